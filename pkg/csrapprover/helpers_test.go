package csrapprover

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// keys are generated once: some allowed ones, and others that are not allowed.
var keys = sync.OnceValue(func() map[string]crypto.Signer {
	made := map[string]crypto.Signer{}
	for name, curve := range map[string]elliptic.Curve{"P-224": elliptic.P224(), "P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			panic(err)
		}
		made[name] = key
	}
	for name, bits := range map[string]int{"RSA-1024": 1024, "RSA-2048": 2048} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		made[name] = key
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	made["Ed25519"] = key
	return made
})

// requested is the content of a request in the types of the tests.
type requested struct {
	signer, user  string
	groups        []string
	commonNames   []string
	organizations []any
	// units are additional attributes of the subject.
	units          []string
	dns, ips       []string
	emails, uris   []string
	usages         []certificatesv1.KeyUsage
	key            string
	before, behind string
	// spoil changes the DER encoding. write changes the PEM text.
	spoil, write func([]byte) []byte
}

var oidUnit = asn1.ObjectIdentifier{2, 5, 4, 11}

func attribute(oid asn1.ObjectIdentifier, value any) pkix.RelativeDistinguishedNameSET {
	return pkix.RelativeDistinguishedNameSET{{Type: oid, Value: value}}
}

// text returns the PEM text of a request, or an error if such a request cannot exist.
func (w requested) text() ([]byte, error) {
	var subject pkix.RDNSequence
	for _, organization := range w.organizations {
		subject = append(subject, attribute(oidOrganization, organization))
	}
	for _, name := range w.commonNames {
		subject = append(subject, attribute(oidCommonName, name))
	}
	for _, unit := range w.units {
		subject = append(subject, attribute(oidUnit, unit))
	}
	raw, err := asn1.Marshal(subject)
	if err != nil {
		return nil, err
	}
	template := &x509.CertificateRequest{RawSubject: raw, DNSNames: w.dns, EmailAddresses: w.emails}
	for _, ip := range w.ips {
		parsed := net.ParseIP(ip)
		if parsed == nil {
			return nil, fmt.Errorf("%q is not an IP address", ip)
		}
		template.IPAddresses = append(template.IPAddresses, parsed)
	}
	for _, uri := range w.uris {
		parsed, err := url.Parse(uri)
		if err != nil {
			return nil, err
		}
		template.URIs = append(template.URIs, parsed)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, keys()[w.key])
	if err != nil {
		return nil, err
	}
	if w.spoil != nil {
		der = w.spoil(der)
	}
	text := []byte(w.before + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})) + w.behind)
	if w.write != nil {
		text = w.write(text)
	}
	return text, nil
}

func (w requested) spec(tb testing.TB) *certificatesv1.CertificateSigningRequestSpec {
	tb.Helper()
	text, err := w.text()
	if err != nil {
		tb.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequestSpec{
		Request: text, SignerName: w.signer, Username: w.user, Groups: w.groups, Usages: w.usages,
	}
}

// world is the state of the clusters.
type world struct {
	withMachines bool
	// nodes have the addresses of Nodes.
	nodes map[string][]corev1.NodeAddress
	// machines have the values of the label of Machines.
	machines map[string]string
}

// judge decides, and answers the questions about missing facts.
func judge(tb testing.TB, spec *certificatesv1.CertificateSigningRequestSpec, w world) (result decision, questions []question) {
	tb.Helper()
	content, facts := parse(spec.Request), newFacts(w.withMachines)
	for range 4 {
		result = decide(spec, content, facts)
		if result.verdict != ask {
			return result, questions
		}
		questions = append(questions, result.question)
		name := result.question.name
		switch result.question.topic {
		case aboutNode:
			addresses, found := w.nodes[name]
			facts.nodes[name] = node{found: found, addresses: addresses}
		case aboutMachine:
			label, found := w.machines[name]
			facts.machines[name] = machine{found: found, node: label}
		case aboutMachinesOf:
			facts.machinesOf[name] = []string{}
			for machine, label := range w.machines {
				if label == name {
					facts.machinesOf[name] = append(facts.machinesOf[name], machine)
				}
			}
		}
	}
	tb.Fatalf("it repeatedly asks questions: %v", questions)
	return result, nil
}

var (
	signature   = certificatesv1.UsageDigitalSignature
	encipher    = certificatesv1.UsageKeyEncipherment
	serverUsage = certificatesv1.UsageServerAuth
	clientUsage = certificatesv1.UsageClientAuth
)

// servingRequest is the request of the kubelet of node-1 in goodWorld.
func servingRequest() requested {
	return requested{
		signer: certificatesv1.KubeletServingSignerName, user: "system:node:node-1", groups: []string{"system:nodes", "system:authenticated"},
		commonNames: []string{"system:node:node-1"}, organizations: []any{"system:nodes"}, key: "P-256",
		dns: []string{"host-1", "node-1.internal"}, ips: []string{"10.0.0.1", "2001:db8::1"},
		usages: []certificatesv1.KeyUsage{signature, serverUsage},
	}
}

// agentRequest is the request of the node agent of machine-1 in goodWorld to renew its certificate.
func agentRequest() requested {
	return requested{
		signer: certificatesv1.KubeAPIServerClientSignerName, user: "gardener.cloud:node-agent:machine:machine-1",
		groups:      []string{"gardener.cloud:node-agents", "system:authenticated"},
		commonNames: []string{"gardener.cloud:node-agent:machine:machine-1"}, organizations: []any{"gardener.cloud:node-agents"}, key: "P-256",
		usages: []certificatesv1.KeyUsage{signature, encipher, clientUsage},
	}
}

// bootstrapRequest is the request of the node agent of machine-2, which has no Node yet.
func bootstrapRequest() requested {
	w := agentRequest()
	w.user, w.groups = "system:bootstrap:abcdef", []string{"system:bootstrappers", "system:authenticated"}
	w.commonNames = []string{"gardener.cloud:node-agent:machine:machine-2"}
	return w
}

// gardenadmRequest is the request of gardenadm.
func gardenadmRequest() requested {
	w := bootstrapRequest()
	w.commonNames, w.organizations = []string{"gardener.cloud:gardenadm:shoot:garden:root"}, []any{"gardener.cloud:system:shoots"}
	return w
}

func goodWorld() world {
	return world{
		withMachines: true,
		nodes: map[string][]corev1.NodeAddress{"node-1": {
			{Type: corev1.NodeHostName, Address: "host-1"}, {Type: corev1.NodeInternalDNS, Address: "node-1.internal"},
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeExternalIP, Address: "2001:db8::1"},
		}},
		machines: map[string]string{"machine-1": "node-1", "machine-2": "", "machine-3": "node-3"},
	}
}
