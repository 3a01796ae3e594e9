package csrapprover

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestServingCertificateIsIssued checks that a kubelet gets a certificate of the cluster's authority for the addresses of its Node.
func TestServingCertificateIsIssued(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	node, _ := f.joined("node")
	d := f.serving(node)
	name := f.request(d)
	if got := a.decide(name); got != approvedServing {
		t.Fatal(got)
	}
	certificate := f.issued(name, d, x509.ExtKeyUsageServerAuth)
	for _, host := range []string{node, node + ".internal", "10.0.0.1", "2001:db8::1"} {
		kit.Must(t, certificate.VerifyHostname(host))
	}
	if a.metric("certificate_requests_decided_total", "kubelet-serving", "approved", "passed") != 1 || a.metric("certificate_request_decision_age_seconds", "kubelet-serving") != 1 {
		t.Error("the metrics do not count the approval")
	}
	a.requests.Forget()
	if got := a.decide(name); got != approvedServing || len(a.requests.All()) != 1 {
		t.Errorf("a decided request is processed again: %s, %v", got, a.requests.All())
	}
}

// TestServingWithoutMachines checks that without a namespace of Machines, the Node is sufficient.
func TestServingWithoutMachines(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newApprover(false).wantDecision(f.serving(f.node("node")), approvedServing, "")
}

// TestServingIsDenied violates every condition once.
func TestServingIsDenied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	node, _ := f.joined("node")
	for name, test := range map[string]struct {
		change func(*demand)
		why    string
	}{
		"user": {func(d *demand) { d.user, d.groups = "alice", nil }, `the user "alice" does not begin with "system:node:"`},
		"user of another node": {func(d *demand) { d.user = "system:node:" + f.name("other") },
			`the common name "system:node:` + node + `" is not the user "system:node:` + f.name("other") + `"`},
		"user without the group of nodes": {func(d *demand) { d.groups = nil }, `is not in the group "system:nodes"`},
		"forged common name": {func(d *demand) { d.template.Subject.CommonName = "system:node:" + f.name("other") },
			`the common name "system:node:` + f.name("other") + `" is not the user`},
		"common name of an administrator": {func(d *demand) { d.template.Subject.CommonName = "kubernetes-admin" }, `the common name "kubernetes-admin" is not the user`},
		"two common names": {func(d *demand) {
			d.template.Subject = pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{
				{Type: []int{2, 5, 4, 10}, Value: "system:nodes"}, {Type: []int{2, 5, 4, 3}, Value: "system:admin"}, {Type: []int{2, 5, 4, 3}, Value: d.user},
			}}
		}, "the subject has 2 common names"},
		"no SANs":              {func(d *demand) { d.template.DNSNames, d.template.IPAddresses = nil, nil }, "the request contains neither DNS names nor IP addresses"},
		"no organization":      {func(d *demand) { d.template.Subject.Organization = nil }, "the organization is none"},
		"another organization": {func(d *demand) { d.template.Subject.Organization = []string{"system:masters"} }, `the organization is "system:masters"`},
		"one organization more": {func(d *demand) { d.template.Subject.Organization = []string{"system:nodes", "system:masters"} },
			`the organization is "system:nodes", "system:masters"`},
		"another attribute": {func(d *demand) { d.template.Subject.OrganizationalUnit = []string{"x"} }, "the subject has more than"},
		"email address":     {func(d *demand) { d.template.EmailAddresses = []string{"a@b.c"} }, "email addresses or URIs"},
		"URI":               {func(d *demand) { d.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }, "email addresses or URIs"},
		"client usage": {func(d *demand) { d.usages = append(d.usages, certificatesv1.UsageClientAuth) },
			`the usages are "digital signature", "server auth", "client auth"`},
		"signing usage": {func(d *demand) { d.usages = []certificatesv1.KeyUsage{certificatesv1.UsageCertSign} }, `the usages are "cert sign"`},
		"weak key":      {func(d *demand) { d.key = rsaKey() }, "the RSA key has 1024 bits"},
		"second block": {func(d *demand) {
			d.behind = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
		},
			"more than a PEM block"},
		"too large":            {func(d *demand) { d.behind = strings.Repeat("\n", 70000) }, "more than the 65536 allowed"},
		"DNS name more":        {func(d *demand) { d.template.DNSNames = append(d.template.DNSNames, "kubernetes.default") }, "the DNS names of the request are"},
		"DNS name less":        {func(d *demand) { d.template.DNSNames = d.template.DNSNames[:1] }, "the DNS names of the request are"},
		"foreign IP address":   {func(d *demand) { d.template.IPAddresses[0] = net.IPv4(10, 0, 0, 2) }, `the IP addresses of the request are "10.0.0.2"`},
		"IP address less":      {func(d *demand) { d.template.IPAddresses = d.template.IPAddresses[1:] }, "the IP addresses of the request are"},
		"name that is no name": {func(d *demand) { d.user = "system:node:a/b"; d.template.Subject.CommonName = d.user }, `"a/b" cannot be the name of a Node`},
	} {
		t.Run(name, func(*testing.T) {
			d := f.serving(node)
			test.change(&d)
			a.wantDecision(d, deniedServing, test.why)
		})
	}
	if denied := a.metric("certificate_requests_decided_total", "denied"); denied != 23 || a.metric("certificate_requests_decided_total", "approved") != 0 {
		t.Errorf("the metrics count %g denied requests", denied)
	}
}

// TestServingNeedsNodeAndMachine checks denials for reasons in the clusters, not in the request.
func TestServingNeedsNodeAndMachine(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	missing := f.name("missing")
	f.machine(f.name("m"), missing)
	a.wantDecision(f.serving(missing), deniedServing, `Node "`+missing+`" does not exist`)
	alone := f.node("alone")
	a.wantDecision(f.serving(alone), deniedServing, `the Node "`+alone+`" has 0 Machines (none)`)
	f.machine(alone, "") // the label counts, not the name
	a.wantDecision(f.serving(alone), deniedServing, `has 0 Machines`)
	f.machine(f.name("first"), alone)
	a.wantDecision(f.serving(alone), approvedServing, "")
	f.machine(f.name("second"), alone)
	a.wantDecision(f.serving(alone), deniedServing, `the Node "`+alone+`" has 2 Machines ("`+f.name("first")+`", "`+f.name("second")+`"); it must have exactly one`)
	long := f.name(strings.Repeat("x", 80)) // too long for a label
	f.nodeWith(long, corev1.NodeAddress{Type: corev1.NodeHostName, Address: long}, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: long + ".internal"})
	a.wantDecision(f.serving(long), deniedServing, "has 0 Machines")
}

// TestServingAddresses checks that the alternative names are those that a kubelet requests for the addresses of its Node.
func TestServingAddresses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(false)
	address := func(kind corev1.NodeAddressType, text string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: kind, Address: text}
	}
	for name, test := range map[string]struct {
		addresses []corev1.NodeAddress
		dns, ips  []string
		want      string
	}{
		"every-type": {[]corev1.NodeAddress{
			address("Hostname", "h"), address("InternalDNS", "i.d"), address("ExternalDNS", "e.d"), address("InternalIP", "10.1.1.1"), address("ExternalIP", "192.0.2.1"),
		}, []string{"e.d", "h", "i.d"}, []string{"192.0.2.1", "10.1.1.1"}, approvedServing},
		"host-name-and-ip-alone": {[]corev1.NodeAddress{address("Hostname", "h"), address("InternalIP", "10.1.1.1")}, []string{"h"}, []string{"10.1.1.1"}, approvedServing},
		"external-left-out": {[]corev1.NodeAddress{address("Hostname", "h"), address("InternalIP", "10.1.1.1"), address("ExternalIP", "192.0.2.1")},
			[]string{"h"}, []string{"10.1.1.1"}, deniedServing},
		"host-name-is-an-ip":  {[]corev1.NodeAddress{address("Hostname", "10.1.1.1"), address("InternalIP", "10.1.1.1")}, nil, []string{"10.1.1.1"}, approvedServing},
		"written-differently": {[]corev1.NodeAddress{address("Hostname", "h"), address("InternalIP", "2001:DB8:0:0::1")}, []string{"h"}, []string{"2001:db8::1"}, approvedServing},
		"unparsable":          {[]corev1.NodeAddress{address("Hostname", "h"), address("InternalIP", "10.1.1")}, []string{"h"}, nil, deniedServing},
		"none-yet":            {nil, []string{"h"}, nil, deniedServing},
	} {
		t.Run(name, func(*testing.T) {
			node := f.name(name)
			f.nodeWith(node, test.addresses...)
			d := f.serving(node)
			d.template.DNSNames, d.template.IPAddresses = test.dns, nil
			for _, ip := range test.ips {
				d.template.IPAddresses = append(d.template.IPAddresses, net.ParseIP(ip))
			}
			a.wantDecision(d, test.want, "")
		})
	}
}

// TestDeniedKubeletHasAnEvent checks that the Node has an Event, because it is where users investigate failures of "kubectl logs".
func TestDeniedKubeletHasAnEvent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	d := f.serving(f.node("node"))
	name := f.request(d)
	a.decide(name)
	want := "Warning ServingCertificateDenied CertificateSigningRequest " + name + " was denied: the Node \"" + f.name("node") + "\" has 0 Machines"
	if got := <-a.recorder.Events; !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
	d.user, d.groups = "alice", nil
	a.decide(f.request(d))
	a.wantDecision(f.renewal(f.name("nobody")), deniedClient, "")
	if len(a.recorder.Events) != 0 {
		t.Error("an Event was recorded without a Node, or for another certificate")
	}
}

// TestOthersAreLeftAlone checks that requests of other signers or for other common names, and decided requests, are not written.
func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	ours := f.renewal(f.name("machine"))
	for name, change := range map[string]func(*demand){
		"another signer":          func(d *demand) { d.signer = "example.com/signer" },
		"another common name":     func(d *demand) { d.template.Subject.CommonName = "alice" },
		"no common name":          func(d *demand) { d.template.Subject.CommonName = "" },
		"the prefix is not whole": func(d *demand) { d.template.Subject.CommonName = "gardener.cloud:node-agent:machine" },
		"the prefix is not first": func(d *demand) { d.template.Subject.CommonName = "a:" + d.template.Subject.CommonName },
		"other letters":           func(d *demand) { d.template.Subject.CommonName = "Gardener.cloud:node-agent:machine:x" },
		"a weak key":              func(d *demand) { d.template.Subject.CommonName, d.key = "alice", rsaKey() },
		"two blocks": func(d *demand) {
			d.template.Subject.CommonName, d.behind = "alice", "-----BEGIN A-----\n-----END A-----\n"
		},
		"too large to be examined": func(d *demand) { d.behind = strings.Repeat("\n", 70000) },
	} {
		d := ours
		change(&d)
		request := f.request(d)
		a.requests.Forget()
		if got := a.decide(request); got != "" {
			t.Errorf("%s: %s", name, got)
		}
		if sent := a.requests.All(); len(sent) != 1 { // only the request itself is read
			t.Errorf("%s: sent %v", name, sent)
		}
	}
	decided := f.request(ours)
	csr := f.read(decided)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByHand", Message: "by a person",
	}}
	kit.Must(t, f.client.SubResource("approval").Update(f.ctx, csr))
	if got := a.decide(decided); got != "Approved ByHand: by a person" {
		t.Error(got)
	}
	if _, err := a.try("gone"); err != nil {
		t.Errorf("the error for a request that does not exist is %v", err)
	}
	if slices.ContainsFunc(a.requests.All(), func(sent kit.Request) bool { return sent.Method != http.MethodGet }) {
		t.Errorf("sent %v", a.requests.All())
	}
}

// TestUnreadableRequestsAreNotAdmitted checks that the API server rejects requests that cannot be parsed or that were not signed with
// their key.
func TestUnreadableRequestsAreNotAdmitted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, text := range []string{"", "nonsense", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"} {
		csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: []byte(text), SignerName: certificatesv1.KubeletServingSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth},
		}}
		csr.GenerateName = f.id + "-"
		if err := f.client.Create(f.ctx, csr); err == nil {
			t.Errorf("%q is admitted", text)
		}
	}
}
