package csrapprover

import (
	"bytes"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// story is a request, the state of the clusters, and the expected verdict. why is the text of the reason for a denial.
type story struct {
	request func() requested
	change  func(*requested, *world)
	want    verdict
	class   string
	why     string
}

func (s story) run(t *testing.T) {
	t.Helper()
	w, state := s.request(), goodWorld()
	if s.change != nil {
		s.change(&w, &state)
	}
	got, _ := judge(t, w.spec(t), state)
	if got.verdict != s.want || got.class != s.class || got.why != s.why {
		t.Errorf("got %d %q %q,\nwant %d %q %q", got.verdict, got.class, got.why, s.want, s.class, s.why)
	}
}

func runAll(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, story := range stories {
		t.Run(name, story.run)
	}
}

func TestServing(t *testing.T) {
	address := func(kind corev1.NodeAddressType, text string) func(*requested, *world) {
		return func(_ *requested, state *world) {
			state.nodes["node-1"] = append(state.nodes["node-1"], corev1.NodeAddress{Type: kind, Address: text})
		}
	}
	usages := func(usages ...certificatesv1.KeyUsage) func(*requested, *world) {
		return func(w *requested, _ *world) { w.usages = usages }
	}
	const usagesRule = `; they must be "digital signature" and "server auth", and may be "key encipherment"`
	runAll(t, map[string]story{
		"as kubelets ask":             {servingRequest, nil, approve, classPassed, allPassed},
		"with key encipherment":       {servingRequest, usages(encipher, serverUsage, signature), approve, classPassed, allPassed},
		"without Machines":            {servingRequest, func(_ *requested, s *world) { s.withMachines, s.machines = false, nil }, approve, classPassed, allPassed},
		"DNS name alone":              {servingRequest, func(w *requested, s *world) { w.ips, s.nodes["node-1"] = nil, s.nodes["node-1"][:2] }, approve, classPassed, allPassed},
		"IP address alone":            {servingRequest, func(w *requested, s *world) { w.dns, s.nodes["node-1"] = nil, s.nodes["node-1"][2:] }, approve, classPassed, allPassed},
		"names twice":                 {servingRequest, func(w *requested, _ *world) { w.dns, w.ips = append(w.dns, w.dns...), append(w.ips, w.ips...) }, approve, classPassed, allPassed},
		"address twice":               {servingRequest, address(corev1.NodeInternalIP, "10.0.0.1"), approve, classPassed, allPassed},
		"address written differently": {servingRequest, address(corev1.NodeInternalIP, "2001:0db8:0::01"), approve, classPassed, allPassed},
		"IPv4 in IPv6":                {servingRequest, address(corev1.NodeInternalIP, "::ffff:10.0.0.1"), approve, classPassed, allPassed},
		"host name that is an IP address, as kubelets take it": {servingRequest, address(corev1.NodeHostName, "10.0.0.1"), approve, classPassed, allPassed},
		"empty addresses, as kubelets take them":               {servingRequest, address(corev1.NodeExternalIP, ""), approve, classPassed, allPassed},
		"another type of address":                              {servingRequest, address("Other", "x"), approve, classPassed, allPassed},

		"user": {servingRequest, func(w *requested, _ *world) { w.user = "alice" }, deny, classUser, `the user "alice" does not begin with "system:node:"`},
		"user of the common name": {servingRequest, func(w *requested, _ *world) { w.user, w.commonNames = "node-1", []string{"node-1"} }, deny, classUser,
			`the user "node-1" does not begin with "system:node:"`},
		"group": {servingRequest, func(w *requested, _ *world) { w.groups = []string{"system:authenticated"} }, deny, classUser, `the user "system:node:node-1" is not in the group "system:nodes"`},
		"no names": {servingRequest, func(w *requested, _ *world) { w.dns, w.ips, w.uris = nil, nil, []string{"spiffe://a"} }, deny, classNames,
			"the request contains neither DNS names nor IP addresses"},
		"common name of another node": {servingRequest, func(w *requested, _ *world) { w.commonNames = []string{"system:node:node-2"} }, deny, classCommonName,
			`the common name "system:node:node-2" is not the user "system:node:node-1"`},
		"common name in other letters": {servingRequest, func(w *requested, _ *world) { w.commonNames = []string{"system:node:NODE-1"} }, deny, classCommonName,
			`the common name "system:node:NODE-1" is not the user "system:node:node-1"`},
		"no common name":        {servingRequest, func(w *requested, _ *world) { w.commonNames = nil }, deny, classCommonName, `the common name "" is not the user "system:node:node-1"`},
		"two common names":      {servingRequest, func(w *requested, _ *world) { w.commonNames = []string{"root", "system:node:node-1"} }, deny, classSubject, "the subject has 2 common names; it must have one"},
		"no organization":       {servingRequest, func(w *requested, _ *world) { w.organizations = nil }, deny, classSubject, `the organization is none; it must be "system:nodes" alone`},
		"another organization":  {servingRequest, func(w *requested, _ *world) { w.organizations = []any{"system:masters"} }, deny, classSubject, `the organization is "system:masters"; it must be "system:nodes" alone`},
		"one organization more": {servingRequest, func(w *requested, _ *world) { w.organizations = []any{"system:nodes", "system:masters"} }, deny, classSubject, `the organization is "system:nodes", "system:masters"; it must be "system:nodes" alone`},
		"organization that Go does not show": {servingRequest, func(w *requested, _ *world) { w.organizations = []any{"system:nodes", 7} }, deny, classSubject,
			"the subject has more than a common name and an organization"},
		"another attribute": {servingRequest, func(w *requested, _ *world) { w.units = []string{"x"} }, deny, classSubject, "the subject has more than a common name and an organization"},
		"email address":     {servingRequest, func(w *requested, _ *world) { w.emails = []string{"a@b.c"} }, deny, classNames, "the request contains email addresses or URIs"},
		"URI":               {servingRequest, func(w *requested, _ *world) { w.uris = []string{"spiffe://a"} }, deny, classNames, "the request contains email addresses or URIs"},
		"client usage":      {servingRequest, usages(signature, clientUsage), deny, classUsages, `the usages are "digital signature", "client auth"` + usagesRule},
		"one usage more":    {servingRequest, usages(signature, serverUsage, clientUsage), deny, classUsages, `the usages are "digital signature", "server auth", "client auth"` + usagesRule},
		"no signature":      {servingRequest, usages(serverUsage), deny, classUsages, `the usages are "server auth"` + usagesRule},
		"no usage":          {servingRequest, usages(), deny, classUsages, `the usages are none` + usagesRule},
		"name that is a path": {servingRequest, func(w *requested, _ *world) { w.user, w.commonNames = "system:node:../x", []string{"system:node:../x"} }, deny, classNode,
			`"../x" cannot be the name of a Node`},
		"no name": {servingRequest, func(w *requested, _ *world) { w.user, w.commonNames = "system:node:", []string{"system:node:"} }, deny, classNode, `"" cannot be the name of a Node`},
		"no Node": {servingRequest, func(_ *requested, s *world) { delete(s.nodes, "node-1") }, deny, classNode, `Node "node-1" does not exist`},
		"no Machine": {servingRequest, func(_ *requested, s *world) { delete(s.machines, "machine-1") }, deny, classMachine,
			`the Node "node-1" has 0 Machines (none); it must have exactly one`},
		"Machine named like the Node": {servingRequest, func(_ *requested, s *world) { s.machines = map[string]string{"node-1": ""} }, deny, classMachine,
			`the Node "node-1" has 0 Machines (none); it must have exactly one`},
		"a DNS name less": {servingRequest, func(w *requested, _ *world) { w.dns = w.dns[:1] }, deny, classNodeAddresses,
			`the DNS names of the request are "host-1", but "host-1", "node-1.internal" in the status of the Node "node-1"`},
		"DNS name of another node": {servingRequest, func(w *requested, _ *world) { w.dns = append(w.dns, "host-2") }, deny, classNodeAddresses,
			`the DNS names of the request are "host-1", "host-2", "node-1.internal", but "host-1", "node-1.internal" in the status of the Node "node-1"`},
		"IP address of another node": {servingRequest, func(w *requested, _ *world) { w.ips = []string{"10.0.0.2"} }, deny, classNodeAddresses,
			`the IP addresses of the request are "10.0.0.2", but "10.0.0.1", "2001:db8::1" in the status of the Node "node-1"`},
		"no addresses yet": {servingRequest, func(_ *requested, s *world) { s.nodes["node-1"] = nil }, deny, classNodeAddresses,
			`the DNS names of the request are "host-1", "node-1.internal", but none in the status of the Node "node-1"`},
		"invalid address": {servingRequest, address(corev1.NodeInternalIP, "10.0.0"), deny, classNodeAddresses,
			`"10.0.0" is not an IP address, but has the type InternalIP in the status of the Node "node-1"`},
	})
}

func TestTwoMachinesOfANode(t *testing.T) {
	state := goodWorld()
	state.machines["machine-9"] = "node-1"
	if got, _ := judge(t, servingRequest().spec(t), state); got.verdict != deny || got.class != classMachine || !strings.Contains(got.why, "has 2 Machines") {
		t.Errorf("got %+v", got)
	}
}

func TestNodeAgent(t *testing.T) {
	migrationRequest := func() requested {
		w := agentRequest()
		w.user, w.groups = nodeAgentServiceAccount, []string{"system:serviceaccounts"}
		return w
	}
	noMachines := func(_ *requested, s *world) { s.withMachines, s.machines = false, nil }
	name := func(name string) func(*requested, *world) {
		return func(w *requested, _ *world) { w.commonNames = []string{nodeAgentPrefix + name} }
	}
	const notAllowed = ` may not request it; only a bootstrap token, the node agent itself, and the ServiceAccount kube-system/gardener-node-agent may`
	const usagesRule = `; they must be "client auth", and may be "digital signature" and "key encipherment"`
	runAll(t, map[string]story{
		"renewal":                             {agentRequest, nil, approve, classPassed, allPassed},
		"renewal without Machines":            {agentRequest, noMachines, approve, classPassed, allPassed},
		"renewal without a Node":              {agentRequest, func(_ *requested, s *world) { s.machines["machine-1"], s.nodes = "", nil }, approve, classPassed, allPassed},
		"without encipherment":                {agentRequest, func(w *requested, _ *world) { w.usages = w.usages[2:] }, approve, classPassed, allPassed},
		"bootstrap":                           {bootstrapRequest, nil, approve, classPassed, allPassed},
		"bootstrap, labelled, no Node yet":    {bootstrapRequest, name("machine-3"), approve, classPassed, allPassed},
		"bootstrap without Machines, no Node": {bootstrapRequest, noMachines, approve, classPassed, allPassed},
		"migration":                           {migrationRequest, nil, approve, classPassed, allPassed},

		"no Machine": {agentRequest, func(_ *requested, s *world) { s.machines = nil }, deny, classMachine, `Machine "machine-1" does not exist`},
		"renewal of another's": {agentRequest, name("machine-3"), deny, classUser,
			`the common name "gardener.cloud:node-agent:machine:machine-3" is not the user "gardener.cloud:node-agent:machine:machine-1"`},
		"bootstrap of a Machine in use": {bootstrapRequest, name("machine-1"), deny, classNode,
			`the Machine "machine-1" already has the Node "node-1", so a bootstrap token is not sufficient`},
		"bootstrap of a Node without Machines": {bootstrapRequest, func(w *requested, s *world) { noMachines(w, s); name("node-1")(w, s) }, deny, classNode,
			`the Machine "node-1" already has the Node "node-1", so a bootstrap token is not sufficient`},
		"bootstrap, unknown Machine":       {bootstrapRequest, name("machine-9"), deny, classMachine, `Machine "machine-9" does not exist`},
		"bootstrap user without the group": {bootstrapRequest, func(w *requested, _ *world) { w.groups = nil }, deny, classUser, `the user "system:bootstrap:abcdef"` + notAllowed},
		"kubelet, as in the documents":     {bootstrapRequest, func(w *requested, _ *world) { w.user, w.groups = "system:node:node-1", []string{"system:nodes"} }, deny, classUser, `the user "system:node:node-1"` + notAllowed},
		"another user":                     {agentRequest, func(w *requested, _ *world) { w.user = "alice" }, deny, classUser, `the user "alice"` + notAllowed},
		"another ServiceAccount":           {migrationRequest, func(w *requested, _ *world) { w.user += "2" }, deny, classUser, `the user "system:serviceaccount:kube-system:gardener-node-agent2"` + notAllowed},
		"migration without a Node":         {migrationRequest, name("machine-2"), deny, classMachine, `the Machine "machine-2" has no Node`},
		"migration without Machines": {migrationRequest, noMachines, deny, classUser, `the user is "system:serviceaccount:kube-system:gardener-node-agent", for which a Machine is needed, ` +
			`but no namespace of Machines is configured (controllers.csrApprover.machineNamespace)`},
		"migration, unknown Machine": {migrationRequest, name("machine-9"), deny, classMachine, `Machine "machine-9" does not exist`},
		"no name":                    {bootstrapRequest, name(""), deny, classMachine, `"" cannot be the name of a Machine`},
		"name that is a path":        {bootstrapRequest, name("a/b"), deny, classMachine, `"a/b" cannot be the name of a Machine`},

		"organization": {agentRequest, func(w *requested, _ *world) { w.organizations = []any{"system:masters"} }, deny, classSubject, `the organization is "system:masters"; it must be "gardener.cloud:node-agents" alone`},
		"one organization more": {bootstrapRequest, func(w *requested, _ *world) { w.organizations = append(w.organizations, "system:masters") }, deny, classSubject,
			`the organization is "gardener.cloud:node-agents", "system:masters"; it must be "gardener.cloud:node-agents" alone`},
		"no organization":   {agentRequest, func(w *requested, _ *world) { w.organizations = nil }, deny, classSubject, `the organization is none; it must be "gardener.cloud:node-agents" alone`},
		"another attribute": {agentRequest, func(w *requested, _ *world) { w.units = []string{"x"} }, deny, classSubject, "the subject has more than a common name and an organization"},
		"DNS name":          {agentRequest, func(w *requested, _ *world) { w.dns = []string{"kubernetes"} }, deny, classNames, "the request contains DNS names, IP addresses, email addresses or URIs, which a client certificate must not have"},
		"IP address":        {agentRequest, func(w *requested, _ *world) { w.ips = []string{"10.0.0.1"} }, deny, classNames, "the request contains DNS names, IP addresses, email addresses or URIs, which a client certificate must not have"},
		"server usage":      {agentRequest, func(w *requested, _ *world) { w.usages = append(w.usages, serverUsage) }, deny, classUsages, `the usages are "digital signature", "key encipherment", "client auth", "server auth"` + usagesRule},
		"no client usage":   {agentRequest, func(w *requested, _ *world) { w.usages = w.usages[:1] }, deny, classUsages, `the usages are "digital signature"` + usagesRule},
	})
}

func TestGardenadm(t *testing.T) {
	runAll(t, map[string]story{
		"as it asks":            {gardenadmRequest, nil, approve, classPassed, allPassed},
		"without Machines":      {gardenadmRequest, func(_ *requested, s *world) { s.withMachines = false }, approve, classPassed, allPassed},
		"user":                  {gardenadmRequest, func(w *requested, _ *world) { w.user = "alice" }, deny, classUser, `the user "alice" may not request it; only a bootstrap token may`},
		"no organization":       {gardenadmRequest, func(w *requested, _ *world) { w.organizations = nil }, deny, classSubject, `the organization is none; it must be "gardener.cloud:system:shoots" alone`},
		"that of the agents":    {gardenadmRequest, func(w *requested, _ *world) { w.organizations = []any{nodeAgentsGroup} }, deny, classSubject, `the organization is "gardener.cloud:node-agents"; it must be "gardener.cloud:system:shoots" alone`},
		"server usage":          {gardenadmRequest, func(w *requested, _ *world) { w.usages = []certificatesv1.KeyUsage{serverUsage} }, deny, classUsages, `the usages are "server auth"; they must be "client auth", and may be "digital signature" and "key encipherment"`},
		"the prefix of another": {gardenadmRequest, func(w *requested, _ *world) { w.commonNames = []string{"gardener.cloud:gardenadm:"} }, noOpinion, "", ""},
	})
}

func TestForm(t *testing.T) {
	spoiled := func(w *requested, _ *world) {
		w.spoil = func(der []byte) []byte { der[len(der)-1] ^= 1; return der }
	}
	second := "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
	const moreThanOne = "the request contains more than a PEM block of type CERTIFICATE REQUEST"
	key := func(name string) func(*requested, *world) { return func(w *requested, _ *world) { w.key = name } }
	huge := func(w *requested, _ *world) {
		w.write = func(text []byte) []byte {
			return append(text, bytes.Repeat([]byte("\n"), maxRequestSize+1-len(text))...)
		}
	}
	foreign := func(change func(*requested, *world)) func(*requested, *world) {
		return func(w *requested, s *world) { w.commonNames = []string{"alice"}; change(w, s) }
	}
	behind := func(text string) func(*requested, *world) { return func(w *requested, _ *world) { w.behind = text } }
	before := func(text string) func(*requested, *world) { return func(w *requested, _ *world) { w.before = text } }
	runAll(t, map[string]story{
		"white space around":     {servingRequest, func(w *requested, _ *world) { w.before, w.behind = "\n\n", " \n\t" }, approve, classPassed, allPassed},
		"text behind":            {servingRequest, behind("x"), deny, classForm, moreThanOne},
		"second block":           {servingRequest, behind(second), deny, classForm, moreThanOne},
		"second block, client":   {agentRequest, behind(second), deny, classForm, moreThanOne},
		"second block, foreign":  {agentRequest, foreign(behind(second)), noOpinion, "", ""},
		"text before":            {bootstrapRequest, before("x\n"), deny, classForm, moreThanOne},
		"signature":              {servingRequest, spoiled, deny, classForm, "the signature of the request is not valid: x509: ECDSA verification failure"},
		"signature, client":      {agentRequest, spoiled, deny, classForm, "the signature of the request is not valid: x509: ECDSA verification failure"},
		"signature, foreign":     {agentRequest, foreign(spoiled), noOpinion, "", ""},
		"P-384":                  {servingRequest, key("P-384"), approve, classPassed, allPassed},
		"P-521":                  {servingRequest, key("P-521"), approve, classPassed, allPassed},
		"Ed25519":                {servingRequest, key("Ed25519"), approve, classPassed, allPassed},
		"RSA":                    {servingRequest, key("RSA-2048"), approve, classPassed, allPassed},
		"P-224":                  {servingRequest, key("P-224"), deny, classForm, "the ECDSA key is on the curve P-224; P-256, P-384 and P-521 are allowed"},
		"short RSA key":          {agentRequest, key("RSA-1024"), deny, classForm, "the RSA key has 1024 bits; 2048 to 8192 are allowed"},
		"short RSA key, foreign": {agentRequest, foreign(key("RSA-1024")), noOpinion, "", ""},
		"too large, client":      {agentRequest, huge, noOpinion, "", ""},
		"other signer":           {servingRequest, func(w *requested, _ *world) { w.signer = "kubernetes.io/kube-apiserver-client-kubelet" }, noOpinion, "", ""},
		"no signer":              {agentRequest, func(w *requested, _ *world) { w.signer = "" }, noOpinion, "", ""},
		"foreign common name":    {agentRequest, foreign(func(*requested, *world) {}), noOpinion, "", ""},
	})
	const tooLarge = "the request has 65537 bytes, more than the 65536 allowed"
	if got := parse(make([]byte, maxRequestSize+1)); !got.tooLarge || got.flaw != tooLarge {
		t.Errorf("got %+v", got)
	}
	story{request: servingRequest, change: huge, want: deny, class: classForm, why: tooLarge}.run(t)
}

func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		"":         "the request does not begin with a PEM block of type CERTIFICATE REQUEST",
		"nonsense": "the request does not begin with a PEM block of type CERTIFICATE REQUEST",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n":                 "the request does not begin with a PEM block of type CERTIFICATE REQUEST",
		"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n": "the request cannot be parsed: ",
	} {
		for _, signer := range []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientSignerName} {
			spec := &certificatesv1.CertificateSigningRequestSpec{Request: []byte(text), SignerName: signer}
			got, questions := judge(t, spec, goodWorld())
			if got.verdict != deny || got.class != classForm || !strings.HasPrefix(got.why, want) || len(questions) > 0 {
				t.Errorf("%q for %s: got %+v, asked %v", text, signer, got, questions)
			}
		}
	}
}

// TestQuestions checks that no facts are requested for a request that is denied anyway, and only the necessary ones for others.
func TestQuestions(t *testing.T) {
	stranger := bootstrapRequest()
	stranger.user = "alice"
	used := bootstrapRequest()
	used.commonNames = []string{nodeAgentPrefix + "machine-1"}
	for name, test := range map[string]struct {
		requested requested
		want      int
	}{
		"serving": {servingRequest(), 2}, "renewal": {agentRequest(), 1}, "bootstrap": {bootstrapRequest(), 1},
		"bootstrap of a labelled Machine": {used, 2}, "stranger": {stranger, 0}, "gardenadm": {gardenadmRequest(), 0},
	} {
		if _, questions := judge(t, test.requested.spec(t), goodWorld()); len(questions) != test.want {
			t.Errorf("%s: asked %v, want %d questions", name, questions, test.want)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	w := servingRequest()
	w.dns = nil
	for range 2000 {
		w.dns = append(w.dns, strings.Repeat("x", 20))
	}
	w.user = "system:node:" + strings.Repeat("y", 10000)
	got, _ := judge(t, w.spec(t), goodWorld())
	if got.verdict != deny || len(got.why) > 500 {
		t.Errorf("%d bytes: %s", len(got.why), got.why)
	}
	var many []string
	for range 50 {
		many = append(many, strings.Repeat("z", 1000))
	}
	if text := quoteAll(many); len(text) > 20*(maxQuoted+10) || !strings.HasSuffix(text, ", and 30 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestCondition(t *testing.T) {
	for _, test := range []struct {
		signer   string
		decision decision
		want     certificatesv1.CertificateSigningRequestCondition
	}{
		{certificatesv1.KubeletServingSignerName, approved(ofKubelet), certificatesv1.CertificateSigningRequestCondition{
			Type: "Approved", Reason: "RequestApproved", Message: "Approving kubelet server certificate CSR (all checks passed)"}},
		{certificatesv1.KubeletServingSignerName, denied(ofKubelet, classForm, "why"), certificatesv1.CertificateSigningRequestCondition{
			Type: "Denied", Reason: "RequestDenied", Message: "Denying kubelet server certificate CSR (why)"}},
		{certificatesv1.KubeAPIServerClientSignerName, approved(ofNodeAgent), certificatesv1.CertificateSigningRequestCondition{
			Type: "Approved", Reason: "RequestApproved", Message: "Approving gardener-node-agent certificate CSR (all checks passed)"}},
		{certificatesv1.KubeAPIServerClientSignerName, denied(ofNodeAgent, classForm, "why"), certificatesv1.CertificateSigningRequestCondition{
			Type: "Denied", Reason: "RequestDenied", Message: "Denying gardener-node-agent certificate CSR (why)"}},
	} {
		test.want.Status = corev1.ConditionTrue
		if got := conditionOf(test.signer, test.decision); got != test.want {
			t.Errorf("got %+v, want %+v", got, test.want)
		}
	}
}

func TestReduceKeepsWhatIsUndecided(t *testing.T) {
	requestWith := func(change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
			Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Request: []byte("x")},
		}
		change(csr)
		return csr
	}
	condition := func(condition certificatesv1.RequestConditionType) func(*certificatesv1.CertificateSigningRequest) {
		return func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: condition}}
		}
	}
	for name, test := range map[string]struct {
		csr  *certificatesv1.CertificateSigningRequest
		kept bool
	}{
		"new": {requestWith(func(*certificatesv1.CertificateSigningRequest) {}), true},
		"client": {requestWith(func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
		}), true},
		"another condition": {requestWith(condition("Other")), true},
		"approved":          {requestWith(condition(certificatesv1.CertificateApproved)), false},
		"denied":            {requestWith(condition(certificatesv1.CertificateDenied)), false},
		"issued":            {requestWith(func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Certificate = []byte("x") }), false},
		"being deleted":     {requestWith(func(csr *certificatesv1.CertificateSigningRequest) { csr.DeletionTimestamp = &metav1.Time{} }), false},
		"another signer":    {requestWith(func(csr *certificatesv1.CertificateSigningRequest) { csr.Spec.SignerName = "example.com/a" }), false},
	} {
		if Undecided(test.csr) != test.kept {
			t.Errorf("%s: undecided is %t", name, !test.kept)
		}
		reduced, err := Reduce(test.csr.DeepCopy())
		got, ok := reduced.(*certificatesv1.CertificateSigningRequest)
		if err != nil || !ok {
			t.Fatal(reduced, err)
		}
		if got.Name != "a" || got.UID != "u" || got.ResourceVersion != "1" || got.ManagedFields != nil || (len(got.Spec.Request) > 0) != test.kept || Undecided(got) != test.kept {
			t.Errorf("%s: %+v remains", name, got)
		}
	}
}
