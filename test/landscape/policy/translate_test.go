package policy

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/knftables"
	"sigs.k8s.io/yaml"
)

func testPod(namespace, name, ip string, labels map[string]string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{NodeName: "here", Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
			{Name: "web", ContainerPort: 8080}, {Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// testCluster has Pods in two namespaces, including some that policies cannot select.
func testCluster(t *testing.T, policies ...string) Cluster {
	t.Helper()
	c := Cluster{
		Namespaces: []*corev1.Namespace{
			{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"team": "a"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "two", Labels: map[string]string{"team": "b"}}},
		},
		Pods: []*corev1.Pod{
			testPod("one", "server", "10.0.0.1", map[string]string{"app": "server"}),
			testPod("one", "client", "10.0.0.2", map[string]string{"app": "client"}),
			testPod("two", "client", "10.0.0.3", map[string]string{"app": "client"}, func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports[0].ContainerPort = 9090
			}),
			testPod("two", "server", "10.0.0.4", map[string]string{"app": "server"}, func(p *corev1.Pod) { p.Spec.NodeName = "there" }),
			testPod("one", "host", "192.168.0.1", map[string]string{"app": "client"}, func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
			testPod("one", "done", "10.0.0.5", map[string]string{"app": "client"}, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			testPod("one", "new", "10.0.0.6", map[string]string{"app": "client"}, func(p *corev1.Pod) { p.Status.PodIPs = nil }),
			testPod("one", "both", "10.0.0.7", map[string]string{"app": "both"}, func(p *corev1.Pod) {
				p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::7"})
			}),
		},
	}
	for _, text := range policies {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "one"}}
		if err := yaml.UnmarshalStrict([]byte(text), &policy.Spec); err != nil {
			t.Fatal(err)
		}
		c.Policies = append(c.Policies, policy)
	}
	return c
}

func (c Chain) text() string {
	direction := "in"
	if c.Egress {
		direction = "out"
	}
	return c.Address.String() + " " + direction + ": " + strings.Join(c.Rules, " | ")
}

func TestTranslate(t *testing.T) {
	const server = "podSelector: {matchLabels: {app: server}}\n"
	for name, test := range map[string]struct {
		policies []string
		want     []string
	}{
		"no policy": {nil, nil},
		"nothing may come in": {
			[]string{server + "policyTypes: [Ingress]"},
			[]string{"10.0.0.1 in: "},
		},
		"nothing may come in or go out": {
			[]string{server + "policyTypes: [Ingress, Egress]"},
			[]string{"10.0.0.1 in: ", "10.0.0.1 out: "},
		},
		"without types, it is about ingress": {
			[]string{server},
			[]string{"10.0.0.1 in: "},
		},
		"without types and with egress, it is about both": {
			[]string{server + "egress: [{}]"},
			[]string{"10.0.0.1 in: ", "10.0.0.1 out: "},
		},
		"a rule without peers and ports allows everything": {
			[]string{server + "ingress: [{}]"},
			[]string{"10.0.0.1 in: "},
		},
		"all Pods of the namespace, in both families": {
			[]string{"podSelector: {}\npolicyTypes: [Ingress]"},
			[]string{"10.0.0.1 in: ", "10.0.0.2 in: ", "10.0.0.7 in: ", "fd00::7 in: "},
		},
		"from Pods of the same namespace": {
			[]string{server + "ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]"},
			[]string{"10.0.0.1 in: ip saddr { 10.0.0.2 }"},
		},
		"from all Pods of a namespace": {
			[]string{server + "ingress: [{from: [{namespaceSelector: {matchLabels: {team: b}}}]}]"},
			[]string{"10.0.0.1 in: ip saddr { 10.0.0.3, 10.0.0.4 }"},
		},
		"from Pods of all namespaces": {
			[]string{server + "ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: client}}}]}]"},
			[]string{"10.0.0.1 in: ip saddr { 10.0.0.2, 10.0.0.3 }"},
		},
		"from Pods that do not exist": {
			[]string{server + "ingress: [{from: [{podSelector: {matchLabels: {app: none}}}]}]"},
			[]string{"10.0.0.1 in: "},
		},
		"expressions": {
			[]string{server + "ingress: [{from: [{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [server, both]}]}}]}]"},
			[]string{"10.0.0.1 in: ip saddr { 10.0.0.2 }"},
		},
		"from networks": {
			[]string{server + "ingress: [{from: [{ipBlock: {cidr: 10.1.2.3/8, except: [10.1.0.0/16, 10.1.2.0/24, 10.2.0.0/16]}}, {ipBlock: {cidr: 'fd00::/8'}}]}]"},
			[]string{"10.0.0.1 in: ip saddr 10.0.0.0/8 ip saddr != { 10.1.0.0/16, 10.2.0.0/16 }"},
		},
		"from networks of IPv6": {
			[]string{"podSelector: {matchLabels: {app: both}}\ningress: [{from: [{ipBlock: {cidr: 'fd00::/8', except: ['fd01::/16']}}]}]"},
			[]string{"10.0.0.7 in: ", "fd00::7 in: ip6 saddr fd00::/8 ip6 saddr != { fd01::/16 }"},
		},
		"Pods of both families": {
			[]string{"podSelector: {matchLabels: {app: both}}\ningress: [{from: [{podSelector: {}}]}]"},
			[]string{"10.0.0.7 in: ip saddr { 10.0.0.1, 10.0.0.2, 10.0.0.7 }", "fd00::7 in: ip6 saddr { fd00::7 }"},
		},
		"ports": {
			[]string{server + "ingress: [{ports: [{port: 80}, {port: 53, protocol: UDP}, {protocol: SCTP}, {port: 8000, endPort: 8010}, {port: 7, endPort: 7}]}]"},
			[]string{"10.0.0.1 in: meta l4proto sctp | tcp dport 7 | tcp dport 80 | tcp dport 8000-8010 | udp dport 53"},
		},
		"ports of peers": {
			[]string{server + "ingress: [{from: [{podSelector: {matchLabels: {app: client}}}, {ipBlock: {cidr: 10.1.0.0/16}}], ports: [{port: 80}, {port: 81}]}]"},
			[]string{"10.0.0.1 in: ip saddr 10.1.0.0/16 tcp dport 80 | ip saddr 10.1.0.0/16 tcp dport 81 | " +
				"ip saddr { 10.0.0.2 } tcp dport 80 | ip saddr { 10.0.0.2 } tcp dport 81"},
		},
		"a named port of the Pod that is selected": {
			[]string{server + "ingress: [{ports: [{port: web}, {port: dns, protocol: UDP}, {port: dns}, {port: none}]}]"},
			[]string{"10.0.0.1 in: tcp dport 8080 | udp dport 53"},
		},
		"a named port is another one in each Pod that is sent to": {
			[]string{server + "policyTypes: [Egress]\negress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {app: client}}}], ports: [{port: web}, {port: 443}]}]"},
			[]string{"10.0.0.1 out: ip daddr { 10.0.0.2 } tcp dport 8080 | ip daddr { 10.0.0.2, 10.0.0.3 } tcp dport 443 | " +
				"ip daddr { 10.0.0.3 } tcp dport 9090"},
		},
		"a named port without peers": {
			[]string{server + "policyTypes: [Egress]\negress: [{ports: [{port: dns, protocol: UDP}]}]"},
			[]string{"10.0.0.1 out: ip daddr { 10.0.0.1 } udp dport 53 | ip daddr { 10.0.0.2 } udp dport 53 | ip daddr { 10.0.0.3 } udp dport 53 | " +
				"ip daddr { 10.0.0.4 } udp dport 53 | ip daddr { 10.0.0.7 } udp dport 53"},
		},
		"a named port of a network is no port": {
			[]string{server + "policyTypes: [Egress]\negress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}], ports: [{port: web}]}]"},
			[]string{"10.0.0.1 out: "},
		},
		"policies add up": {
			[]string{server + "ingress: [{ports: [{port: 80}]}]", server + "ingress: [{ports: [{port: 81}]}, {ports: [{port: 80}]}]"},
			[]string{"10.0.0.1 in: tcp dport 80 | tcp dport 81"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, chain := range Translate(testCluster(t, test.policies...), "here") {
				got = append(got, chain.text())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if name == "a rule without peers and ports allows everything" {
				if rules := Translate(testCluster(t, test.policies...), "here")[0].Rules; len(rules) != 1 || rules[0] != "" {
					t.Errorf("the rules are %q, want one that allows everything", rules)
				}
			}
		})
	}
}

// TestNodes checks that a node has the chains of its own Pods, and that all nodes together have the chains of all Pods.
func TestNodes(t *testing.T) {
	c := testCluster(t, "podSelector: {}\npolicyTypes: [Ingress]")
	c.Policies[0].Namespace = "two"
	for node, want := range map[string]string{"here": "10.0.0.3", "there": "10.0.0.4", "": "10.0.0.3 10.0.0.4", "elsewhere": ""} {
		var got []string
		for _, chain := range Translate(c, node) {
			got = append(got, chain.Address.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the node %q has chains of %v, want %s", node, got, want)
		}
	}
}

// TestTransaction checks that the table is replaced as a whole, and that the base chains match packets before the chains of
// Pods.
func TestTransaction(t *testing.T) {
	fake := knftables.NewFake(knftables.InetFamily, Table)
	e := &Enforcer{nft: fake}
	c := testCluster(t, "podSelector: {matchLabels: {app: server}}\npolicyTypes: [Ingress, Egress]\ningress: [{ports: [{port: 80}]}]\negress: [{}]")
	for i, want := range []bool{true, false} {
		if changed, err := e.Apply(t.Context(), Translate(c, "here")); err != nil || changed != want {
			t.Fatalf("application %d reports a change: %t, want %t: %v", i, changed, want, err)
		}
	}
	dump := fake.Dump()
	for _, line := range []string{
		"add chain inet landscape-policy forward { type filter hook forward priority -5 ; }",
		"add rule inet landscape-policy forward ct state established,related accept",
		"add rule inet landscape-policy forward ip daddr 10.0.0.1 ip saddr != 10.0.0.1 jump in-10-0-0-1",
		"add rule inet landscape-policy forward ip saddr 10.0.0.1 ip daddr != 10.0.0.1 jump out-10-0-0-1",
		"add rule inet landscape-policy input ip saddr 10.0.0.1 ip daddr != 10.0.0.1 jump out-10-0-0-1",
		"add rule inet landscape-policy in-10-0-0-1 tcp dport 80 return\nadd rule inet landscape-policy in-10-0-0-1 drop",
		"add rule inet landscape-policy out-10-0-0-1 return\nadd rule inet landscape-policy out-10-0-0-1 drop",
	} {
		if !strings.Contains(dump, line) {
			t.Errorf("missing line: %s\nin:\n%s", line, dump)
		}
	}
	if strings.Contains(dump, "input ip daddr") {
		t.Errorf("packets that the node sends are filtered:\n%s", dump)
	}
	if changed, err := e.Apply(t.Context(), nil); err != nil || !changed || strings.Contains(fake.Dump(), "10-0-0-1") {
		t.Errorf("chains remain after all policies are removed: %v\n%s", err, fake.Dump())
	}
}
