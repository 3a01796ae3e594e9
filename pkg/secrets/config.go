// Package secrets keeps the certificates, keys and passwords of a control plane. What is asked for is a list of pure [Config]s. [Resolve]
// decides, from them, the rotations that are declared, the Secrets that exist and the time, what is current, what is old, which bundles
// there are, what has to be generated and what is not used any more. [Manager] generates and writes. Names, labels and rotations are those of
// Gardener's secrets manager. Bytes of keys reach no log: see [Material].
package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Kind is what a Secret holds.
type Kind string

// The kinds of Secrets.
const (
	// KindCA is a certificate authority: ca.crt and ca.key.
	KindCA Kind = "CertificateAuthority"
	// KindServer is a certificate of a server: tls.crt, tls.key, and ca.crt of who signed it.
	KindServer Kind = "ServerCertificate"
	// KindClient is a certificate of a client.
	KindClient Kind = "ClientCertificate"
	// KindServerClient is a certificate of one that is both, such as a member of etcd.
	KindServerClient Kind = "ServerClientCertificate"
	// KindRSAKey is a private key: id_rsa.
	KindRSAKey Kind = "RSAKey"
	// KindBasicAuth is a user with a password: username, password.
	KindBasicAuth Kind = "BasicAuth"
	// KindStaticToken is a file of tokens of kube-apiserver: static_tokens.csv.
	KindStaticToken Kind = "StaticToken"
	// KindEncryptionKey is a key of kube-apiserver for what it writes into etcd: key, secret, encoding.
	KindEncryptionKey Kind = "EncryptionKey"
)

// tenYears is how long certificates are valid unless something else is said.
const tenYears = 10 * 365 * 24 * time.Hour

// Config asks for a Secret. Fields that what is generated depends on are in its checksum.
type Config struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// CommonName of a certificate. That of an authority is the name of its Secret.
	CommonName string `json:"commonName,omitempty"`
	// Organization of a certificate.
	Organization []string `json:"organization,omitempty"`
	// DNSNames and IPAddresses of a server.
	DNSNames    []string `json:"dnsNames,omitempty"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// Username of KindBasicAuth and KindStaticToken.
	Username string `json:"username,omitempty"`
	// Bits of KindRSAKey; 0 for 4096.
	Bits int `json:"bits,omitempty"`
	// Validity of a certificate, 10 years if it is 0, or of a password, which does not expire if it is 0.
	Validity time.Duration `json:"validity,omitempty"`

	// SignedBy is the name of the authority of a certificate.
	SignedBy string `json:"-"`
	// ByOther has a server's certificate signed by the current authority though there is an old one, or a client's by the old one.
	ByOther bool `json:"-"`
	// KeepOld keeps the Secret before the last rotation until that is being completed.
	KeepOld bool `json:"-"`
	// IgnoreOldAfter is how long after the current Secret was issued the old one is dropped without a rotation that says so; 0 for never.
	IgnoreOldAfter time.Duration `json:"-"`
	// RenewAfter is the share of the validity, in percent, after which a certificate is renewed; 0 for 80.
	RenewAfter int `json:"-"`
	// RenewAuthority has an authority renewed, too.
	RenewAuthority bool `json:"-"`
	// AlwaysChecksum gives an authority's Secret a name with a checksum before its first rotation, too.
	AlwaysChecksum bool `json:"-"`
	// Persist has the Secret saved with the state of the Shoot.
	Persist bool `json:"-"`
	// RestoreOnly refuses to generate the first Secret: one must have been lost. It is set once what it encrypts exists.
	RestoreOnly bool `json:"-"`
}

// Rotation is what is declared of a rotation of a Secret.
type Rotation struct {
	// Initiated is when it was started last.
	Initiated time.Time
	Phase     corev1beta1.CredentialsRotationPhase
}

// dropsOld reports whether the old Secret is not accepted any more.
func (r Rotation) dropsOld() bool {
	return r.Phase == corev1beta1.RotationCompleting || r.Phase == corev1beta1.RotationCompleted
}

func (c Config) isCertificate() bool {
	return c.Kind == KindServer || c.Kind == KindClient || c.Kind == KindServerClient
}

// hasBundle reports whether current and old Secret are handed out together.
func (c Config) hasBundle() bool { return c.Kind == KindCA || c.Kind == KindRSAKey && c.KeepOld }

func (c Config) validity() time.Duration {
	if c.Validity == 0 && (c.Kind == KindCA || c.isCertificate()) {
		return tenYears
	}
	return c.Validity
}

// checksum is that of all that the generated data depend on, as a decimal number.
func (c Config) checksum() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("the checksum of the config of secret %s: %w", c.Name, err)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text) // never fails
	return strconv.FormatUint(hash.Sum64(), 10), nil
}

// secretName returns the name of the Secret of a config.
func (c Config) secretName(checksumOfConfig, checksumOfCA string, rotated time.Time) string {
	name := c.Name
	if c.Kind != KindCA || c.AlwaysChecksum || !rotated.IsZero() {
		name += "-" + hexDigits(8, checksumOfConfig+checksumOfCA)
	}
	if !rotated.IsZero() {
		name += "-" + hexDigits(5, strconv.FormatInt(rotated.Unix(), 10))
	}
	return name
}

func hexDigits(count int, text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:count]
}
