package csrapprover

import (
	"crypto/x509"
	"net"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// bootstrapToken creates a bootstrap token and returns a demand of a node agent that authenticates with it.
func (f *fixture) bootstrapToken(id, machine string) demand {
	f.Helper()
	kit.Must(f, f.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"},
	}))
	d := f.bootstrap(machine)
	d.user, d.groups, d.token = "system:bootstrap:"+id, nil, id+".0123456789abcdef"
	return d
}

// TestNodeAgentBootstraps uses a real bootstrap token. A Machine without a Node gets a certificate, a Machine with a Node does not.
func TestNodeAgentBootstraps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	fresh := f.name("fresh")
	f.machine(fresh, "")
	d := f.bootstrapToken("a1b2c3", fresh)
	var name string
	kit.Eventually(t, "the API server accepts the bootstrap token", func() string {
		csr, err := f.tryRequest(d)
		name = csr.Name
		return kit.TextOf(err)
	})
	if got := a.decide(name); got != approvedClient {
		t.Fatal(got)
	}
	f.issued(name, d, x509.ExtKeyUsageClientAuth)

	labelled := f.name("labelled")
	machine := f.machine(labelled, f.name("later"))
	d.template.Subject.CommonName = "gardener.cloud:node-agent:machine:" + labelled
	a.wantDecision(d, approvedClient, "") // the label is set before the Node exists
	f.nodeWith(f.name("later"))
	a.wantDecision(d, deniedClient, `the Machine "`+labelled+`" already has the Node "`+f.name("later")+`"`)
	kit.Must(t, f.client.Delete(f.ctx, machine))
	a.wantDecision(d, deniedClient, `Machine "`+labelled+`" does not exist`)
}

// TestNodeAgentRenews checks that a node agent can renew its own certificate, with or without a Node, and no other certificate.
func TestNodeAgentRenews(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	_, machine := f.joined("node")
	d := f.renewal(machine)
	name := f.request(d)
	if got := a.decide(name); got != approvedClient {
		t.Fatal(got)
	}
	f.issued(name, d, x509.ExtKeyUsageClientAuth)
	if a.metric("certificate_requests_decided_total", "node-agent", "approved", "passed") != 1 {
		t.Error("the metrics do not count the approvals")
	}
	_, other := f.joined("other")
	d.template.Subject.CommonName = "gardener.cloud:node-agent:machine:" + other
	a.wantDecision(d, deniedClient, `the common name "gardener.cloud:node-agent:machine:`+other+`" is not the user`)
	a.wantDecision(f.renewal(f.name("nobody")), deniedClient, `Machine "`+f.name("nobody")+`" does not exist`)
}

// TestNodeAgentMigrates checks the migration from the ServiceAccount, which requires that the Machine has a Node.
func TestNodeAgentMigrates(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	_, machine := f.joined("node")
	migration := func(machine string) demand {
		d := f.renewal(machine)
		d.user, d.groups = "system:serviceaccount:kube-system:gardener-node-agent", []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}
		return d
	}
	a.wantDecision(migration(machine), approvedClient, "")
	f.machine(f.name("idle"), "")
	a.wantDecision(migration(f.name("idle")), deniedClient, `the Machine "`+f.name("idle")+`" has no Node`)
	a.wantDecision(migration(f.name("nobody")), deniedClient, `Machine "`+f.name("nobody")+`" does not exist`)
	f.newApprover(false).wantDecision(migration(machine), deniedClient, "no namespace of Machines is configured")
	d := migration(machine)
	d.user = "system:serviceaccount:default:gardener-node-agent"
	a.wantDecision(d, deniedClient, "may not request it")
}

// TestNodeAgentWithoutMachines checks that without a namespace of Machines, a Machine has the name of its Node.
func TestNodeAgentWithoutMachines(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(false)
	a.wantDecision(f.bootstrap(f.name("node")), approvedClient, "")
	a.wantDecision(f.renewal(f.name("node")), approvedClient, "")
	a.wantDecision(f.bootstrap(f.node("node")), deniedClient, `already has the Node "`+f.name("node")+`"`)
}

// TestNodeAgentIsDenied violates each of the other conditions once.
func TestNodeAgentIsDenied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	node, machine := f.joined("node")
	f.machine(f.name("idle"), "")
	renewal, bootstrap := f.renewal(machine), f.bootstrap(f.name("idle"))
	for name, test := range map[string]struct {
		base   demand
		change func(*demand)
		why    string
	}{
		"somebody":        {renewal, func(d *demand) { d.user, d.groups = "alice", []string{"system:masters"} }, `the user "alice" may not request it`},
		"kubelet":         {bootstrap, func(d *demand) { d.user, d.groups = "system:node:"+node, []string{"system:nodes"} }, `the user "system:node:` + node + `" may not request it`},
		"no bootstrapper": {bootstrap, func(d *demand) { d.groups = nil }, `the user "system:bootstrap:abcdef" may not request it`},
		"extra organization": {bootstrap, func(d *demand) {
			d.template.Subject.Organization = []string{"gardener.cloud:node-agents", "system:nodes"}
		}, `the organization is "system:nodes", "gardener.cloud:node-agents"`},
		"another organization":  {renewal, func(d *demand) { d.template.Subject.Organization = []string{"system:nodes"} }, `the organization is "system:nodes"`},
		"no organization":       {renewal, func(d *demand) { d.template.Subject.Organization = nil }, `the organization is none`},
		"another attribute":     {renewal, func(d *demand) { d.template.Subject.Country = []string{"DE"} }, "the subject has more than"},
		"DNS name":              {renewal, func(d *demand) { d.template.DNSNames = []string{"kubernetes"} }, "which a client certificate must not have"},
		"IP address":            {renewal, func(d *demand) { d.template.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, "which a client certificate must not have"},
		"email address":         {renewal, func(d *demand) { d.template.EmailAddresses = []string{"a@b.c"} }, "which a client certificate must not have"},
		"server usage":          {renewal, func(d *demand) { d.usages = append(d.usages, certificatesv1.UsageServerAuth) }, `the usages are`},
		"no client usage":       {renewal, func(d *demand) { d.usages = d.usages[:1] }, `the usages are "digital signature"`},
		"weak key":              {renewal, func(d *demand) { d.key = rsaKey() }, "the RSA key has 1024 bits"},
		"second block":          {renewal, func(d *demand) { d.behind = "-----BEGIN A-----\n-----END A-----\n" }, "more than a PEM block"},
		"name that is no name":  {bootstrap, func(d *demand) { d.template.Subject.CommonName = "gardener.cloud:node-agent:machine:a/b" }, `"a/b" cannot be the name of a Machine`},
		"no name":               {bootstrap, func(d *demand) { d.template.Subject.CommonName = "gardener.cloud:node-agent:machine:" }, `"" cannot be the name of a Machine`},
		"namespace in the name": {bootstrap, func(d *demand) { d.template.Subject.CommonName = "gardener.cloud:node-agent:machine:default/x" }, "cannot be the name of a Machine"},
	} {
		t.Run(name, func(*testing.T) {
			d := test.base
			test.change(&d)
			a.wantDecision(d, deniedClient, test.why)
		})
	}
	if denied := a.metric("certificate_requests_decided_total", "node-agent", "denied"); denied != 17 {
		t.Errorf("the metrics count %g denied requests", denied)
	}
}

// TestGardenadmConnects connects a self-hosted shoot with a bootstrap token.
func TestGardenadmConnects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	d := f.bootstrap("")
	d.template.Subject.CommonName, d.template.Subject.Organization = "gardener.cloud:gardenadm:shoot:garden:root", []string{"gardener.cloud:system:shoots"}
	name := f.request(d)
	if got := a.decide(name); got != approvedClient {
		t.Fatal(got)
	}
	f.issued(name, d, x509.ExtKeyUsageClientAuth)
	forged := d
	forged.template.Subject.Organization = []string{"gardener.cloud:system:shoots", "gardener.cloud:system:seeds"}
	a.wantDecision(forged, deniedClient, `the organization is`)
	d.user = "alice"
	a.wantDecision(d, deniedClient, `the user "alice" may not request it; only a bootstrap token may`)
}
