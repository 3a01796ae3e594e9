package csrapprover

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"net/netip"
	"regexp"
	"slices"
	"sort"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// This file implements the rules a second time, in another way: as a list of checks on the raw DER encoding and the whole state
// of the clusters. A request is approved if and only if its kind is handled and it breaks none of the rules for that kind.

// rawRequest is the part of a request that the oracle reads.
type rawRequest struct {
	// attributes are "<object identifier>=<text>" in order, or "<object identifier>!" for values that are not text.
	attributes []string
	// names are "<tag of the kind of name>=<bytes>", sorted and unique.
	names []string
	// usable is true if the key and the signature are valid.
	usable bool
}

func (r rawRequest) values(oid string) (values []string) {
	for _, attribute := range r.attributes {
		if value, ok := strings.CutPrefix(attribute, oid+"="); ok {
			values = append(values, value)
		}
	}
	return values
}

func (r rawRequest) commonName() string {
	values := r.values("2.5.4.3")
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

var pemText = regexp.MustCompile(`^(?:[ \t\r\n]*\n)?-----BEGIN CERTIFICATE REQUEST-----\r?\n([A-Za-z0-9+/=\r\n]*)-----END CERTIFICATE REQUEST-----[ \t\r\n]*$`)

// readRaw reads a request whose text is one PEM block without headers.
func readRaw(text []byte) (rawRequest, bool) {
	match := pemText.FindSubmatch(text)
	if match == nil || len(text) > 65536 {
		return rawRequest{}, false
	}
	der, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\r", "", "\n", "").Replace(string(match[1])))
	if err != nil {
		return rawRequest{}, false
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return rawRequest{}, false
	}
	var raw rawRequest
	var sequence []asn1.RawValue
	if _, err := asn1.Unmarshal(parsed.RawSubject, &sequence); err != nil {
		return rawRequest{}, false
	}
	for _, set := range sequence {
		for rest := set.Bytes; len(rest) > 0; {
			var pair struct {
				Type  asn1.ObjectIdentifier
				Value asn1.RawValue
			}
			if rest, err = asn1.Unmarshal(rest, &pair); err != nil {
				return rawRequest{}, false
			}
			tag := pair.Value.Tag
			switch isText := tag == asn1.TagUTF8String || tag == asn1.TagPrintableString; {
			case isText && pair.Value.Class == asn1.ClassUniversal:
				raw.attributes = append(raw.attributes, pair.Type.String()+"="+string(pair.Value.Bytes))
			default:
				raw.attributes = append(raw.attributes, pair.Type.String()+"!")
			}
		}
	}
	for _, extension := range parsed.Extensions {
		if extension.Id.String() != "2.5.29.17" {
			continue
		}
		var names []asn1.RawValue
		if _, err := asn1.Unmarshal(extension.Value, &names); err != nil {
			return rawRequest{}, false
		}
		for _, name := range names {
			raw.names = append(raw.names, string(rune('0'+name.Tag))+"="+string(name.Bytes))
		}
	}
	raw.names = sortedOnce(raw.names)
	info := parsed.RawSubjectPublicKeyInfo
	p256, p384, p521 := []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}, []byte{0x2b, 0x81, 4, 0, 0x22}, []byte{0x2b, 0x81, 4, 0, 0x23}
	goodKey := parsed.PublicKeyAlgorithm == x509.Ed25519 ||
		parsed.PublicKeyAlgorithm == x509.ECDSA && (bytes.Contains(info, p256) || bytes.Contains(info, p384) || bytes.Contains(info, p521)) ||
		parsed.PublicKeyAlgorithm == x509.RSA && len(info) >= 294 && len(info) <= 1100
	raw.usable = goodKey && parsed.CheckSignature() == nil
	return raw, true
}

func sortedOnce(texts []string) []string {
	texts = slices.Clone(texts)
	sort.Strings(texts)
	return slices.Compact(texts)
}

// nodeNames returns the expected rawRequest.names of a Node. wrong is true if an address is invalid.
func nodeNames(addresses []corev1.NodeAddress) (names []string, wrong bool) {
	for _, address := range addresses {
		ip, err := netip.ParseAddr(leadingZeros.ReplaceAllString(address.Address, "$1$2"))
		isIP := err == nil && ip.Zone() == ""
		kind := string(address.Type)
		switch {
		case address.Address == "":
		case isIP && (strings.HasSuffix(kind, "nalIP") || kind == "Hostname"):
			names = append(names, "7="+string(ip.Unmap().AsSlice()))
		case strings.HasSuffix(kind, "nalIP"):
			wrong = true
		case strings.HasSuffix(kind, "nalDNS") || kind == "Hostname":
			names = append(names, "2="+address.Address)
		}
	}
	return sortedOnce(names), wrong
}

// leadingZeros matches leading zeros in the parts of an IPv4 address, which Kubernetes allows.
var leadingZeros = regexp.MustCompile(`(^|\.)0+([0-9])`)

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// oracle returns the expected decision on a request.
func oracle(spec *certificatesv1.CertificateSigningRequestSpec, state world) verdict {
	raw, readable := readRaw(spec.Request)
	holds := func(rules ...bool) verdict {
		if slices.Contains(rules, false) {
			return deny
		}
		return approve
	}
	var usages []string
	for _, usage := range spec.Usages {
		usages = append(usages, string(usage))
	}
	usage := strings.Join(sortedOnce(usages), ",")
	inGroup := func(group string) bool { return slices.Contains(spec.Groups, group) }
	subjectIs := func(organization string) bool {
		got, want := sortedOnce(raw.attributes), sortedOnce([]string{"2.5.4.10=" + organization, "2.5.4.3=" + raw.commonName()})
		return slices.Equal(got, want) && len(raw.attributes) == 2
	}
	switch spec.SignerName {
	case "kubernetes.io/kubelet-serving":
		name := strings.TrimPrefix(spec.Username, "system:node:")
		addresses, nodeExists := state.nodes[name]
		wanted, wrong := nodeNames(addresses)
		machines := 0
		for _, node := range state.machines {
			if node == name {
				machines++
			}
		}
		return holds(readable && raw.usable, spec.Username == "system:node:"+name, inGroup("system:nodes"), raw.commonName() == spec.Username,
			subjectIs("system:nodes"), usage == "digital signature,server auth" || usage == "digital signature,key encipherment,server auth",
			objectName.MatchString(name) && len(name) < 254, nodeExists, machines == 1 || !state.withMachines,
			len(raw.names) > 0, !wrong, slices.Equal(raw.names, wanted))
	case "kubernetes.io/kube-apiserver-client":
		bootstrap := strings.HasPrefix(spec.Username, "system:bootstrap:") && inGroup("system:bootstrappers")
		common := []bool{readable && raw.usable, len(raw.names) == 0, strings.Contains(usage, "client auth"), slices.Contains([]string{
			"client auth", "client auth,digital signature", "client auth,key encipherment", "client auth,digital signature,key encipherment",
		}, usage)}
		if strings.HasPrefix(raw.commonName(), "gardener.cloud:gardenadm:shoot:") {
			return holds(append(common, bootstrap, subjectIs("gardener.cloud:system:shoots"))...)
		}
		name, isAgent := strings.CutPrefix(raw.commonName(), "gardener.cloud:node-agent:machine:")
		if !isAgent {
			return noOpinion
		}
		node, machineExists := state.machines[name]
		if !state.withMachines {
			node, machineExists = name, true
		}
		_, nodeExists := state.nodes[node]
		migration := spec.Username == "system:serviceaccount:kube-system:gardener-node-agent" && state.withMachines && node != ""
		return holds(append(common, subjectIs("gardener.cloud:node-agents"), machineExists, objectName.MatchString(name) && len(name) < 254,
			bootstrap && !nodeExists || spec.Username == raw.commonName() || migration)...)
	}
	return noOpinion
}
