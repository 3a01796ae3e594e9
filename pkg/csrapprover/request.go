package csrapprover

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

const (
	// maxRequestSize is the maximum size of the parsed PEM text in bytes. Requests of kubelets and node agents have less
	// than 2 KiB.
	maxRequestSize = 64 << 10
	// minRSABits and maxRSABits limit the size of RSA keys. Shorter keys are weak, and longer ones are slow to verify.
	minRSABits, maxRSABits = 2048, 8192
	// maxQuoted and maxListed limit the untrusted parts of a request in messages, in bytes and items.
	maxQuoted, maxListed = 100, 20

	pemType = "CERTIFICATE REQUEST"
	// whiteSpace may surround a PEM block.
	whiteSpace = " \t\r\n"
)

// content is the parsed spec.request of a CertificateSigningRequest.
type content struct {
	// CertificateRequest is nil if the text is too large or cannot be parsed.
	*x509.CertificateRequest
	// tooLarge is set if the text was not parsed because of its size.
	tooLarge bool
	// flaw is the reason to deny the request regardless of its other contents; empty if there is none. Kubelets and node
	// agents never send such requests.
	flaw string
}

// parse parses the PEM text of a request. Like Kubernetes, it reads the first block. Further content is a flaw.
func parse(text []byte) content {
	if len(text) > maxRequestSize {
		return content{tooLarge: true, flaw: fmt.Sprintf("the request has %d bytes, more than the %d allowed", len(text), maxRequestSize)}
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return content{flaw: "the request does not begin with a PEM block of type " + pemType}
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return content{flaw: "the request cannot be parsed: " + conditiontext.Shorten(err.Error(), maxQuoted)}
	}
	return content{CertificateRequest: parsed, flaw: flawOf(text, rest, parsed)}
}

func flawOf(text, rest []byte, parsed *x509.CertificateRequest) string {
	if !bytes.HasPrefix(bytes.TrimLeft(text, whiteSpace), []byte("-----BEGIN "+pemType+"-----")) || len(bytes.Trim(rest, whiteSpace)) > 0 {
		return "the request contains more than a PEM block of type " + pemType
	}
	if flaw := flawOfKey(parsed.PublicKey); flaw != "" {
		return flaw
	}
	if err := parsed.CheckSignature(); err != nil {
		return "the signature of the request is not valid: " + conditiontext.Shorten(err.Error(), maxQuoted)
	}
	return ""
}

// flawOfKey returns the reason why a public key is not allowed. It is called before the signature is verified, which is
// slow for long keys.
func flawOfKey(key any) string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return fmt.Sprintf("the RSA key has %d bits; %d to %d are allowed", bits, minRSABits, maxRSABits)
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P224() {
			return "the ECDSA key is on the curve P-224; P-256, P-384 and P-521 are allowed"
		}
	case ed25519.PublicKey:
	default:
		return "the public key is not of type RSA, ECDSA or Ed25519"
	}
	return ""
}

// The attributes that a subject may have: common name and organization.
var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// flawOfSubject returns the reason why a subject is not exactly one common name and the given organization. The signer
// copies the whole subject, and programs differ in how they read attributes that are duplicated or have unusual types.
func (c content) flawOfSubject(organization string) string {
	if !slices.Equal(c.Subject.Organization, []string{organization}) {
		return fmt.Sprintf("the organization is %s; it must be %q alone", quoteAll(c.Subject.Organization), organization)
	}
	names := 0
	for _, attribute := range c.Subject.Names {
		_, isText := attribute.Value.(string)
		switch {
		case !isText || !attribute.Type.Equal(oidCommonName) && !attribute.Type.Equal(oidOrganization):
			return "the subject has more than a common name and an organization"
		case attribute.Type.Equal(oidCommonName):
			names++
		}
	}
	if names != 1 {
		return fmt.Sprintf("the subject has %d common names; it must have one", names)
	}
	return ""
}

// quote returns an untrusted text for a message.
func quote(text string) string { return strconv.Quote(conditiontext.Shorten(text, maxQuoted)) }

// quoteAll returns untrusted texts for a message, or "none" if there are none.
func quoteAll(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	var quoted []string
	for _, text := range texts[:min(len(texts), maxListed)] {
		quoted = append(quoted, quote(text))
	}
	if more := len(texts) - maxListed; more > 0 {
		quoted = append(quoted, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(quoted, ", ")
}
