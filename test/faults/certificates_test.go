package faults

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/pkg/csrapprover"
	"github.com/trellis-k8s/trellis/test/kit"
)

// runLabel marks the certificate requests of a run. They are cluster-scoped.
const runLabel = "faults-run"

// certificates are certificate requests with the expected decision for each: "Approved", "Denied", or empty for
// none.
type certificates struct {
	*ground
	wanted map[string]string
}

// newCertificates creates requests to approve, to deny, and to leave undecided.
func newCertificates(g *ground) errand {
	c := &certificates{g, map[string]string{
		g.namespace + "-kubelet": "Approved", g.namespace + "-stranger": "Denied", g.namespace + "-agent": "Approved",
		g.namespace + "-thief": "Denied", g.namespace + "-other-signer": "", g.namespace + "-by-hand": "Denied",
	}}
	return errand{
		run: c.run, given: c.given, before: nothing, change: c.change, after: c.objections, attest: c.attest, picture: c.picture,
	}
}

func (c *certificates) run(ctx context.Context, l *life) error {
	config := c.controlPlane.Config()
	config.Wrap(l.wrap)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json" // formats that the witness can read
	options := managerOptions(c.client.Scheme())
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&certificatesv1.CertificateSigningRequest{}: {Label: labels.Set{runLabel: c.namespace}.AsSelector(), Transform: csrapprover.Reduce},
	}
	mgr, err := manager.New(config, options)
	if err != nil {
		return err
	}
	machines, err := csrapprover.NewMachines(config, mgr.GetHTTPClient(), c.namespace, logr.Discard())
	if err != nil {
		return err
	}
	approver := &csrapprover.Reconciler{
		Target: mgr.GetClient(), Direct: mgr.GetAPIReader(), Machines: machines,
		Recorder: mgr.GetEventRecorder(csrapprover.ControllerName), Clock: clock.RealClock{}, ConcurrentSyncs: 1,
	}
	if err := approver.AddToManager(mgr, mgr.GetCache()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// given creates a Node and its Machine.
func (c *certificates) given() {
	c.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	kit.Must(c, c.client.Create(c.Context(), node))
	c.Cleanup(func() { kit.Must(c, c.client.Delete(c.always(), node)) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: c.namespace}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	kit.WriteStatus(c, c.client, node)
	machine := &unstructured.Unstructured{}
	machine.SetAPIVersion("machine.sapcloud.io/v1alpha1")
	machine.SetKind("Machine")
	machine.SetNamespace(c.namespace)
	machine.SetName(c.namespace)
	machine.SetLabels(map[string]string{"node": c.namespace})
	kit.Must(c, c.client.Create(c.Context(), machine))
}

func (c *certificates) change() {
	c.Helper()
	kubelet, agent := "system:node:"+c.namespace, "gardener.cloud:node-agent:machine:"+c.namespace
	serving := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	of := func(name, group string, addresses ...string) x509.CertificateRequest {
		request := x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{group}}}
		for _, address := range addresses {
			request.DNSNames, request.IPAddresses = []string{c.namespace}, append(request.IPAddresses, net.ParseIP(address))
		}
		return request
	}
	const nodes, agents = "system:nodes", "gardener.cloud:node-agents"
	c.request("by-hand", kubelet, nodes, certificatesv1.KubeletServingSignerName, serving, of(kubelet, nodes, "10.0.0.1"))
	c.request("kubelet", kubelet, nodes, certificatesv1.KubeletServingSignerName, serving, of(kubelet, nodes, "10.0.0.1"))
	c.request("stranger", kubelet, nodes, certificatesv1.KubeletServingSignerName, serving, of(kubelet, nodes, "10.0.0.1", "10.0.0.2"))
	c.request("agent", agent, agents, certificatesv1.KubeAPIServerClientSignerName, usages, of(agent, agents))
	c.request("thief", agent+"-other", agents, certificatesv1.KubeAPIServerClientSignerName, usages, of(agent, agents))
	c.request("other-signer", agent, agents, "example.org/signer", usages, of(agent, agents))
}

// request creates a request of a user. The one decided by hand is decided before a controller sees it.
func (c *certificates) request(name, user, group, signer string, usages []certificatesv1.KeyUsage, template x509.CertificateRequest) {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(c, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	kit.Must(c, err)
	config := c.controlPlane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{group, "system:authenticated"}}
	asking, err := client.New(config, client.Options{Scheme: c.client.Scheme(), Mapper: c.client.RESTMapper()})
	kit.Must(c, err)
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace + "-" + name, Labels: map[string]string{runLabel: c.namespace}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: usages,
		},
	}
	if name == "by-hand" {
		csr.Labels = nil
	}
	kit.Must(c, asking.Create(c.Context(), csr))
	c.Cleanup(func() { kit.Must(c, c.client.Delete(c.always(), csr)) })
	if name == "by-hand" {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "ByHand", Message: "no",
		}}
		kit.Must(c, c.client.SubResource("approval").Update(c.Context(), csr))
		csr.Labels = map[string]string{runLabel: c.namespace}
		kit.Must(c, c.client.Update(c.Context(), csr))
	}
}

// decisions returns the decisions about each request, with their messages.
func (c *certificates) decisions() map[string][]string {
	c.Helper()
	list := &certificatesv1.CertificateSigningRequestList{}
	kit.Must(c, c.client.List(c.always(), list, client.MatchingLabels{runLabel: c.namespace}))
	decisions := map[string][]string{}
	for _, csr := range list.Items {
		decisions[csr.Name] = nil
		for _, condition := range csr.Status.Conditions {
			decisions[csr.Name] = append(decisions[csr.Name], string(condition.Type)+" "+condition.Reason+": "+condition.Message)
		}
	}
	return decisions
}

// objections returns the requests whose decision differs from the expected one.
func (c *certificates) objections() []string {
	c.Helper()
	var objections []string
	decisions := c.decisions()
	for name, want := range c.wanted {
		got, there := decisions[name]
		undecided := want == "" && len(got) == 0
		if !there || !undecided && (len(got) != 1 || !strings.HasPrefix(got[0], want+" ")) {
			objections = append(objections, fmt.Sprintf("%s is %v, want %q", name, got, want))
		}
		if strings.HasSuffix(name, "-by-hand") && (len(got) != 1 || got[0] != "Denied ByHand: no") {
			objections = append(objections, fmt.Sprintf("%s is %v", name, got))
		}
	}
	slices.Sort(objections)
	return objections
}

func (c *certificates) picture() string {
	c.Helper()
	var lines []string
	decisions := c.decisions()
	for _, name := range slices.Sorted(maps.Keys(decisions)) {
		lines = append(lines, fmt.Sprint(name, decisions[name]))
	}
	return strings.Join(lines, "\n")
}

// attest checks that no request is ever decided differently from what is expected: a decision is final.
func (c *certificates) attest(sent call, body []byte) {
	switch {
	case sent.resource == "events":
		return
	case sent.resource != "certificatesigningrequests" || sent.subresource != "approval":
		c.violate("%s is not a decision", sent)
		return
	}
	var csr certificatesv1.CertificateSigningRequest
	if err := json.Unmarshal(body, &csr); err != nil {
		c.violate("%s: %v", sent, err)
	}
	for _, condition := range csr.Status.Conditions {
		if want := c.wanted[sent.name]; string(condition.Type) != want || condition.Reason == "ByHand" {
			c.violate("%s decides %s, want %q", sent, condition.Type, want)
		}
	}
	if len(csr.Status.Conditions) != 1 || csr.ResourceVersion == "" {
		c.violate("%s decides %d times, at resourceVersion %q", sent, len(csr.Status.Conditions), csr.ResourceVersion)
	}
}
