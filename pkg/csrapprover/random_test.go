package csrapprover

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	randomCount = flag.Int("csr.random", 1000, "number of requests of TestRandomRequests")
	randomSeed  = flag.Uint64("csr.seed", 1, "seed of TestRandomRequests")
)

// TestRandomRequests compares decisions with the oracle for nearly valid requests: up to three values of a valid
// request are replaced by valid or invalid ones.
func TestRandomRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(*randomSeed, 0))
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	const agentPrefix, nodePrefix = "gardener.cloud:node-agent:machine:", "system:node:"
	users := []string{"alice", "", nodePrefix, nodePrefix + "node-1", nodePrefix + "node-2", nodePrefix + "Node-1", nodePrefix + "a/b", agentPrefix, agentPrefix + "machine-1",
		agentPrefix + "machine-2", "system:bootstrap:abcdef", "system:bootstrap:", "system:serviceaccount:kube-system:gardener-node-agent",
		"system:serviceaccount:default:gardener-node-agent", "gardener.cloud:gardenadm:shoot:a:b", nodePrefix + "machine-2"}
	groups := []string{"system:nodes", "system:masters", "gardener.cloud:node-agents", "gardener.cloud:system:shoots", "system:bootstrappers", "", "system:nodes;system:nodes",
		"system:nodes;7", "gardener.cloud:node-agents;system:masters", "system:bootstrappers;system:nodes"}
	names := []string{"", "host-1", "host-1;node-1.internal", "node-1.internal;host-1", "host-1;node-1.internal;host-2", "host-1;host-1;node-1.internal", "10.0.0.1"}
	ips := []string{"", "10.0.0.1", "10.0.0.1;2001:db8::1", "2001:db8::1;10.0.0.1;10.0.0.1", "10.0.0.2;2001:db8::1", "::ffff:10.0.0.1;2001:db8::1"}
	right := []fuzzed{
		{usages: 0b101, user: nodePrefix + "node-1", groups: "system:nodes", commonNames: nodePrefix + "node-1", organizations: "system:nodes",
			dns: "host-1;node-1.internal", ips: "10.0.0.1;2001:db8::1"},
		{signer: 1, usages: 0b1011, user: agentPrefix + "machine-1", commonNames: agentPrefix + "machine-1", organizations: "gardener.cloud:node-agents"},
		{signer: 1, usages: 0b1011, user: "system:bootstrap:abcdef", groups: "system:bootstrappers", commonNames: agentPrefix + "machine-2", organizations: "gardener.cloud:node-agents"},
		{signer: 1, usages: 0b1001, user: "system:bootstrap:abcdef", groups: "system:bootstrappers", commonNames: "gardener.cloud:gardenadm:shoot:a:b",
			organizations: "gardener.cloud:system:shoots"},
	}
	changes := []func(*fuzzed){
		func(f *fuzzed) { f.signer = byte(random.IntN(3)) },
		func(f *fuzzed) { f.usages = byte(random.IntN(32)) },
		func(f *fuzzed) { f.key = byte(random.IntN(len(allKeys))) },
		func(f *fuzzed) { f.user = pick(users...) },
		func(f *fuzzed) { f.commonNames = pick(users...) },
		func(f *fuzzed) { f.user = pick(users...); f.commonNames = f.user },
		func(f *fuzzed) { f.commonNames = pick(users...) + ";" + f.commonNames },
		func(f *fuzzed) { f.groups = pick(groups...) },
		func(f *fuzzed) { f.organizations = pick(groups...) },
		func(f *fuzzed) { f.units = pick("", "x") },
		func(f *fuzzed) { f.dns = pick(names...) },
		func(f *fuzzed) { f.ips = pick(ips...) },
		func(f *fuzzed) { f.others = pick("", "a@b", "spiffe://a") },
		func(f *fuzzed) { f.before = pick("", "\n", "x\n", " ") },
		func(f *fuzzed) { f.behind = pick("", "\n \t", "x", "-----BEGIN A-----\n-----END A-----\n") },
		func(f *fuzzed) { f.spoiledAt, f.spoiledBits = uint16(random.UintN(1<<16)), byte(1<<random.UintN(8)) },
		func(f *fuzzed) { f.nodes = pick("", "node-1", "node-2", "node-1;node-2;machine-2") },
		func(f *fuzzed) {
			f.addresses = pick("", "0host-1;1node-1.internal;310.0.0.1", "0host-1;2node-1.internal;4010.0.0.1;32001:db8:0::1", f.addresses+";3x", f.addresses+";0",
				f.addresses+";010.0.0.1", f.addresses+";5other", f.addresses+";3fe80::1%eth0")
		},
		func(f *fuzzed) {
			f.machines = pick("", "machine-1=node-1", "machine-2=node-1;machine-1=node-1", "machine-1=;machine-2=node-1", "node-1=")
		},
		func(f *fuzzed) { f.withMachines = false },
	}
	for range *randomCount {
		input := right[random.IntN(len(right))]
		input.nodes, input.machines, input.withMachines = "node-1;node-2", "machine-1=node-1;machine-2=", true
		input.addresses = "0host-1;1node-1.internal;310.0.0.1;42001:db8::1"
		for range random.IntN(4) {
			changes[random.IntN(len(changes))](&input)
		}
		checkAgainstOracle(t, input)
	}
}
