package csrapprover

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"slices"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// demand is a request for a certificate and the requesting user.
type demand struct {
	signer, user string
	groups       []string
	// token is the bearer token of the user. Without one, the user is impersonated.
	token    string
	template x509.CertificateRequest
	usages   []certificatesv1.KeyUsage
	key      crypto.Signer
	behind   string
}

var ecdsaKey = sync.OnceValue(func() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

var rsaKey = sync.OnceValue(func() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	return key
})

// serving returns the demand of the kubelet of a Node that f.node created.
func (f *fixture) serving(node string) demand {
	user := "system:node:" + node
	return demand{
		signer: certificatesv1.KubeletServingSignerName, user: user, groups: []string{"system:nodes"}, key: ecdsaKey(),
		template: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: user, Organization: []string{"system:nodes"}},
			DNSNames: []string{node, node + ".internal"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1), net.ParseIP("2001:db8::1")},
		},
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	}
}

// renewal returns the demand of a Machine's node agent whose certificate expires soon.
func (f *fixture) renewal(machine string) demand {
	user := "gardener.cloud:node-agent:machine:" + machine
	return demand{
		signer: certificatesv1.KubeAPIServerClientSignerName, user: user, groups: []string{"gardener.cloud:node-agents"}, key: ecdsaKey(),
		template: x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"gardener.cloud:node-agents"}}},
		usages:   []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
	}
}

// bootstrap returns the demand of a new node agent.
func (f *fixture) bootstrap(machine string) demand {
	d := f.renewal(machine)
	d.user, d.groups = "system:bootstrap:abcdef", []string{"system:bootstrappers"}
	return d
}

// request creates a CertificateSigningRequest as the user of a demand, and returns its name.
func (f *fixture) request(d demand) string {
	f.Helper()
	csr, err := f.tryRequest(d)
	kit.Must(f, err)
	if csr.Spec.Username != d.user {
		f.Fatalf("the API server took the user for %q", csr.Spec.Username)
	}
	return csr.Name
}

func (f *fixture) tryRequest(d demand) (*certificatesv1.CertificateSigningRequest, error) {
	f.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &d.template, d.key)
	kit.Must(f, err)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), d.behind...)
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: f.id + "-"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: text, SignerName: d.signer, Usages: d.usages},
	}
	config := shared.Get(f).Config()
	if d.token != "" {
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = d.token
	} else {
		config.Impersonate = rest.ImpersonationConfig{UserName: d.user, Groups: append(d.groups, "system:authenticated")}
	}
	user, err := client.New(config, client.Options{Scheme: f.client.Scheme(), Mapper: f.client.RESTMapper()})
	kit.Must(f, err)
	return csr, user.Create(f.ctx, csr)
}

// node creates a Node with the addresses that f.serving requests.
func (f *fixture) node(text string) string {
	f.Helper()
	name := f.name(text)
	f.nodeWith(name, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name}, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: name + ".internal"},
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "2001:db8::1"})
	return name
}

func (f *fixture) nodeWith(name string, addresses ...corev1.NodeAddress) {
	f.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	kit.Must(f, f.client.Create(f.ctx, node))
	original := node.DeepCopy()
	node.Status.Addresses = addresses
	kit.Must(f, f.client.Status().Patch(f.ctx, node, client.MergeFrom(original)))
}

// machine creates a Machine. node is the value of its label. If it is empty, the Machine has no label.
func (f *fixture) machine(name, node string) *unstructured.Unstructured {
	f.Helper()
	machine := &unstructured.Unstructured{}
	machine.SetAPIVersion("machine.sapcloud.io/v1alpha1")
	machine.SetKind("Machine")
	machine.SetNamespace(machineNamespace)
	machine.SetName(name)
	if node != "" {
		machine.SetLabels(map[string]string{"node": node})
	}
	kit.Must(f, f.client.Create(f.ctx, machine))
	return machine
}

// joined creates a Node and its Machine, and returns both names.
func (f *fixture) joined(text string) (node, machine string) {
	f.Helper()
	node, machine = f.node(text), f.name("machine-"+text)
	f.machine(machine, node)
	return node, machine
}

// read reads a CertificateSigningRequest.
func (f *fixture) read(name string) *certificatesv1.CertificateSigningRequest {
	f.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	kit.Must(f, f.client.Get(f.ctx, client.ObjectKey{Name: name}, csr))
	return csr
}

// decision returns the decision about a request as "<type> <reason>: <message>". It is empty if there is none.
func (f *fixture) decision(name string) string {
	f.Helper()
	text := ""
	for _, condition := range f.read(name).Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied:
			text += string(condition.Type) + " " + condition.Reason + ": " + condition.Message
			if condition.Status != corev1.ConditionTrue || condition.LastUpdateTime.IsZero() {
				f.Errorf("the condition is %+v", condition)
			}
		}
	}
	return text
}

// issued waits for the certificate of a request and verifies that the cluster has signed it, that it has the requested subject and key,
// and that it is valid for a usage.
func (f *fixture) issued(name string, d demand, usage x509.ExtKeyUsage) *x509.Certificate {
	f.Helper()
	var csr *certificatesv1.CertificateSigningRequest
	kit.EventuallyTrue(f, "the certificate is issued", func() bool {
		csr = f.read(name)
		return len(csr.Status.Certificate) > 0
	})
	block, _ := pem.Decode(csr.Status.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	kit.Must(f, err)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: authority.pool, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		f.Errorf("the certificate is not valid: %v", err)
	}
	got, want := certificate.Subject, d.template.Subject
	if got.CommonName != want.CommonName || !slices.Equal(got.Organization, want.Organization) || len(certificate.ExtKeyUsage) != 1 {
		f.Errorf("the certificate is for %s, usages %v", got, certificate.ExtKeyUsage)
	}
	key, ok := d.key.Public().(*ecdsa.PublicKey)
	if !ok || !key.Equal(certificate.PublicKey) {
		f.Error("the certificate has another key")
	}
	return certificate
}
