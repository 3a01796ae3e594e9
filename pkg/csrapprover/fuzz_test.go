package csrapprover

import (
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

var (
	allSigners = []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientSignerName, "kubernetes.io/kube-apiserver-client-kubelet"}
	allUsages  = []certificatesv1.KeyUsage{signature, encipher, serverUsage, clientUsage, certificatesv1.UsageCertSign}
	allKeys    = []string{"P-256", "P-384", "P-521", "Ed25519", "P-224", "RSA-2048", "RSA-1024"}
	allTypes   = []corev1.NodeAddressType{corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeInternalIP, corev1.NodeExternalIP, "Other"}
)

// fields splits the input of the fuzzer at semicolons.
func fields(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ";")
}

// fuzzed is the input of FuzzDecide in types that the fuzzer supports.
type fuzzed struct {
	signer, usages, key               byte
	user, groups                      string
	commonNames, organizations, units string
	dns, ips, others                  string
	before, behind                    string
	spoiledAt                         uint16
	spoiledBits                       byte
	nodes, addresses, machines        string
	withMachines                      bool
}

func (f fuzzed) requested() requested {
	w := requested{
		signer: allSigners[int(f.signer)%len(allSigners)], key: allKeys[int(f.key)%len(allKeys)], user: f.user, groups: fields(f.groups),
		commonNames: fields(f.commonNames), units: fields(f.units), dns: fields(f.dns), ips: fields(f.ips), before: f.before, behind: f.behind,
	}
	for _, organization := range fields(f.organizations) {
		if organization == "7" {
			w.organizations = append(w.organizations, 7)
		} else {
			w.organizations = append(w.organizations, organization)
		}
	}
	for _, other := range fields(f.others) {
		if strings.Contains(other, ":") {
			w.uris = append(w.uris, other)
		} else {
			w.emails = append(w.emails, other)
		}
	}
	for i, usage := range allUsages {
		if f.usages>>i&1 == 1 {
			w.usages = append(w.usages, usage)
		}
	}
	if f.spoiledBits != 0 {
		w.spoil = func(der []byte) []byte {
			der[int(f.spoiledAt)%len(der)] ^= f.spoiledBits
			return der
		}
	}
	return w
}

// world returns Nodes with the given names, all with the same addresses "<digit of the type><address>", and Machines from
// "<name>=<node>".
func (f fuzzed) world() world {
	state := world{withMachines: f.withMachines, nodes: map[string][]corev1.NodeAddress{}, machines: map[string]string{}}
	var addresses []corev1.NodeAddress
	for _, address := range fields(f.addresses) {
		if address != "" {
			addresses = append(addresses, corev1.NodeAddress{Type: allTypes[int(address[0])%len(allTypes)], Address: address[1:]})
		}
	}
	for _, name := range fields(f.nodes) {
		if name != "" {
			state.nodes[name] = addresses
		}
	}
	for _, pair := range fields(f.machines) {
		if name, node, _ := strings.Cut(pair, "="); name != "" {
			state.machines[name] = node
		}
	}
	return state
}

// FuzzDecide compares the decision with the oracle. A request that breaks a rule must not be approved, and a request that
// follows all rules must not be denied.
func FuzzDecide(f *testing.F) {
	const (
		serving = "system:node:node-1"
		agent   = "gardener.cloud:node-agent:machine:machine-1"
		token   = "system:bootstrap:abcdef"
		account = "system:serviceaccount:kube-system:gardener-node-agent"
	)
	add := func(s fuzzed) {
		f.Add(s.signer, s.usages, s.key, s.user, s.groups, s.commonNames, s.organizations, s.units, s.dns, s.ips, s.others, s.before, s.behind,
			s.spoiledAt, s.spoiledBits, s.nodes, s.addresses, s.machines, s.withMachines)
	}
	// '0' is the type at index 0 of allTypes, because its code, 48, is a multiple of 6. The other digits follow.
	kubelet := fuzzed{
		usages: 0b101, user: serving, groups: "system:nodes;system:authenticated", commonNames: serving, organizations: "system:nodes",
		dns: "host-1;node-1.internal", ips: "10.0.0.1;2001:db8::1", nodes: "node-1;node-2", addresses: "0host-1;1node-1.internal;310.0.0.1;42001:db8::1",
		machines: "machine-1=node-1;machine-2=", withMachines: true,
	}
	nodeAgent := fuzzed{
		signer: 1, usages: 0b1011, user: agent, groups: "gardener.cloud:node-agents", commonNames: agent, organizations: "gardener.cloud:node-agents",
		nodes: "node-1", machines: "machine-1=node-1;machine-2=", withMachines: true,
	}
	for _, change := range []func(*fuzzed){
		func(*fuzzed) {}, func(s *fuzzed) { s.withMachines = false }, func(s *fuzzed) { s.user, s.groups = token, "system:bootstrappers" },
		func(s *fuzzed) { s.user = account }, func(s *fuzzed) { s.organizations += ";system:masters" }, func(s *fuzzed) { s.organizations += ";7" },
		func(s *fuzzed) {
			s.commonNames = "gardener.cloud:gardenadm:shoot:a:b"
			s.organizations = "gardener.cloud:system:shoots"
		},
		func(s *fuzzed) { s.machines += ";machine-3=node-1" }, func(s *fuzzed) { s.machines = "" }, func(s *fuzzed) { s.nodes = "" },
		func(s *fuzzed) { s.commonNames = "a;" + s.commonNames }, func(s *fuzzed) { s.units = "x" }, func(s *fuzzed) { s.others = "a@b;spiffe://a" },
		func(s *fuzzed) { s.usages ^= 0b10 }, func(s *fuzzed) { s.key = 4 }, func(s *fuzzed) { s.key = 6 }, func(s *fuzzed) { s.before = "x\n" },
		func(s *fuzzed) { s.behind = "x" }, func(s *fuzzed) { s.spoiledAt, s.spoiledBits = 200, 1 }, func(s *fuzzed) { s.signer = 2 },
		func(s *fuzzed) { s.addresses += ";010.0.0.1" }, func(s *fuzzed) { s.addresses += ";3x" }, func(s *fuzzed) { s.dns, s.ips = "", "" },
		func(s *fuzzed) {
			s.commonNames, s.user, s.groups = agent[:len(agent)-1]+"2", token, "system:bootstrappers"
		},
	} {
		for _, base := range []fuzzed{kubelet, nodeAgent} {
			change(&base)
			add(base)
		}
	}
	f.Fuzz(func(t *testing.T, signer, usages, key byte, user, groups, commonNames, organizations, units, dns, ips, others, before, behind string,
		spoiledAt uint16, spoiledBits byte, nodes, addresses, machines string, withMachines bool) {
		input := fuzzed{
			signer: signer, usages: usages, key: key, user: user, groups: groups, commonNames: commonNames, organizations: organizations, units: units,
			dns: dns, ips: ips, others: others, before: before, behind: behind, spoiledAt: spoiledAt, spoiledBits: spoiledBits,
			nodes: nodes, addresses: addresses, machines: machines, withMachines: withMachines,
		}
		checkAgainstOracle(t, input)
	})
}

func checkAgainstOracle(t *testing.T, input fuzzed) {
	t.Helper()
	w := input.requested()
	text, err := w.text()
	if err != nil {
		return // such a request cannot exist
	}
	spec := &certificatesv1.CertificateSigningRequestSpec{
		Request: text, SignerName: w.signer, Username: w.user, Groups: w.groups, Usages: w.usages,
	}
	state := input.world()
	got, _ := judge(t, spec, state)
	want := oracle(spec, state)
	if got.verdict == approve && want != approve {
		t.Fatalf("approved, but it breaks a rule: %+v", input)
	}
	// The oracle cannot distinguish a denial from no opinion if it cannot read the request, or if it reads it differently because
	// the encoding is corrupt.
	if raw, readable := readRaw(text); readable && (raw.usable || w.spoil == nil) && got.verdict != want {
		t.Fatalf("got %d %s, want %d: %+v", got.verdict, got.why, want, input)
	}
	if got.verdict != noOpinion && (got.why == "" || got.class == "" || len(conditionOf(w.signer, got).Message) > 4096) {
		t.Fatalf("the reason is missing or too long: %+v", got)
	}
	if again, _ := judge(t, spec, state); again.verdict != got.verdict || again.class != got.class {
		t.Fatalf("the second decision differs: %+v, %+v", got, again)
	}
}

// TestOracleApproves checks that the oracle approves some requests. Otherwise it would be useless.
func TestOracleApproves(t *testing.T) {
	for i, w := range []requested{servingRequest(), agentRequest(), bootstrapRequest(), gardenadmRequest()} {
		if got := oracle(w.spec(t), goodWorld()); got != approve {
			t.Errorf("%d: got %d", i, got)
		}
		w.organizations = slices.Concat(w.organizations, []any{"system:masters"})
		if got := oracle(w.spec(t), goodWorld()); got != deny {
			t.Errorf("%d with one organization more: got %d", i, got)
		}
	}
}
