package secrets

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// decade returns the configs of a control plane, and of ca-seed.
func decade() []Config {
	authority := func(name string) Config {
		return Config{Name: name, Kind: KindCA, KeepOld: true, Persist: true, AlwaysChecksum: name == "ca-client"}
	}
	leaf := func(kind Kind, name, by string, other bool) Config {
		return Config{Name: name, Kind: kind, CommonName: name, SignedBy: by, ByOther: other, Validity: 90 * day}
	}
	configs := []Config{
		{Name: "ca-seed", Kind: KindCA, Validity: 30 * day, KeepOld: true, RenewAuthority: true, IgnoreOldAfter: day},
		leaf(KindServer, "webhook", "ca-seed", false),
		leaf(KindServer, "kube-apiserver", "ca", false),
		leaf(KindClient, "kubectl", "ca-client", false), leaf(KindClient, "kubelet-client", "ca-client", false),
		leaf(KindServerClient, "etcd-server-main", "ca-etcd", false), leaf(KindClient, "etcd-client", "ca-etcd", false),
		leaf(KindServerClient, "etcd-peer-server-main", "ca-etcd-peer", true),
		leaf(KindClient, "kube-aggregator", "ca-front-proxy", true), leaf(KindServer, "metrics-server", "ca-metrics-server", true),
		leaf(KindClient, "kube-apiserver-kubelet", "ca-kubelet", true), leaf(KindServer, "kubelet", "ca-kubelet", true),
		leaf(KindServer, "vpn-seed-server", "ca-vpn", false), leaf(KindClient, "vpn-shoot-client", "ca-vpn", false),
		leaf(KindClient, "kube-apiserver-http-proxy-client", "ca-vpn", false),
		{Name: "vpn-seed-server-tlsauth", Kind: KindVPNTLSAuth},
		{Name: "service-account-key", Kind: KindRSAKey, Bits: 1024, KeepOld: true, Persist: true},
		{Name: "ssh-keypair", Kind: KindSSHKeypair, Bits: 1024, KeepOld: true, Persist: true},
		{Name: "kube-apiserver-etcd-encryption-key", Kind: KindEncryptionKey, KeepOld: true, Persist: true},
		{Name: "observability-ingress-users", Kind: KindBasicAuth, Username: "admin", Persist: true},
		{Name: "plutono-admin", Kind: KindBasicAuth, Username: "admin", Validity: 30 * day},
		{Name: "kube-apiserver-static-token", Kind: KindStaticToken, Persist: true, Users: []User{{Name: "health-check"}}},
		{Name: "generic-token-kubeconfig", Kind: KindKubeconfig, Server: "https://kube-apiserver", Trusts: "ca", TokenFile: "/token"},
	}
	for _, name := range []string{"ca", "ca-client", "ca-etcd", "ca-etcd-peer", "ca-front-proxy", "ca-kubelet", "ca-metrics-server", "ca-vpn"} {
		configs = append(configs, authority(name))
	}
	return configs
}

// units are the parts that are rolled out separately, such as Pods, in the order of a pass: servers before their clients. Their
// uses are named after the kind of use, see cluster.have.
func units() []unit {
	etcd := []string{"show:etcd-server-main", "trust:ca-etcd", "show:etcd-peer-server-main", "trust:ca-etcd-peer"}
	apiserver := []string{
		"show:kube-apiserver", "trust:ca-client", "show:etcd-client", "trust:ca-etcd", "show:kube-apiserver-kubelet", "trust:ca-kubelet",
		"show:kube-aggregator", "trust:ca-metrics-server", "show:kube-apiserver-http-proxy-client", "trust:ca-vpn",
		"sign", "verify", "encryption", "tokens",
	}
	kubelet := []string{"show:kubelet", "trust:ca-kubelet", "show:kubelet-client", "trust:ca", "authorized", "token"}
	return []unit{
		{"etcd-0", etcd}, {"etcd-1", etcd}, {"etcd-2", etcd},
		{"vpn-seed-server", []string{"show:vpn-seed-server", "trust:ca-vpn", "tlsauth"}},
		{"webhook", []string{"show:webhook"}}, {"seed-apiserver", []string{"trust:ca-seed"}},
		{"kube-apiserver-0", apiserver}, {"kube-apiserver-1", apiserver},
		{"metrics-server", []string{"show:metrics-server", "trust:ca-front-proxy", "token"}},
		{"kubelet-0", kubelet}, {"kubelet-1", kubelet},
		{"vpn-shoot", []string{"show:vpn-shoot-client", "trust:ca-vpn", "tlsauth"}},
		{"kube-controller-manager", []string{"kubeconfig", "token"}},
		{"observability", []string{"users", "admin"}},
		{"user", []string{"show:kubectl", "trust:ca", "private", "token"}},
	}
}

// pairs are the clients and servers that communicate over TLS.
var pairs = []pair{
	{client: "kube-apiserver-", server: "etcd-", clientShows: "show:etcd-client", serverTrusts: "trust:ca-etcd", serverShows: "show:etcd-server-main", clientTrusts: "trust:ca-etcd"},
	{
		client: "etcd-", server: "etcd-", clientShows: "show:etcd-peer-server-main", serverTrusts: "trust:ca-etcd-peer",
		serverShows: "show:etcd-peer-server-main", clientTrusts: "trust:ca-etcd-peer",
	},
	{
		client: "kube-apiserver-", server: "vpn-seed-server", clientShows: "show:kube-apiserver-http-proxy-client", serverTrusts: "trust:ca-vpn",
		serverShows: "show:vpn-seed-server", clientTrusts: "trust:ca-vpn",
	},
	{client: "vpn-shoot", server: "vpn-seed-server", clientShows: "show:vpn-shoot-client", serverTrusts: "trust:ca-vpn", serverShows: "show:vpn-seed-server", clientTrusts: "trust:ca-vpn"},
	{
		client: "kube-apiserver-", server: "kubelet-", clientShows: "show:kube-apiserver-kubelet", serverTrusts: "trust:ca-kubelet",
		serverShows: "show:kubelet", clientTrusts: "trust:ca-kubelet",
	},
	{client: "kubelet-", server: "kube-apiserver-", clientShows: "show:kubelet-client", serverTrusts: "trust:ca-client", serverShows: "show:kube-apiserver", clientTrusts: "trust:ca"},
	{
		client: "kube-apiserver-", server: "metrics-server", clientShows: "show:kube-aggregator", serverTrusts: "trust:ca-front-proxy",
		serverShows: "show:metrics-server", clientTrusts: "trust:ca-metrics-server",
	},
	{client: "user", server: "kube-apiserver-", clientShows: "show:kubectl", serverTrusts: "trust:ca-client", serverShows: "show:kube-apiserver", clientTrusts: "trust:ca"},
	{client: "kube-controller-manager", server: "kube-apiserver-", serverShows: "show:kube-apiserver", clientTrusts: "kubeconfig"},
	{client: "seed-apiserver", server: "webhook", serverShows: "show:webhook", clientTrusts: "trust:ca-seed"},
}

// act is an action at a time after the start.
type act struct {
	after time.Duration
	run   func(*cluster)
}

// acts returns three rotations of everything. The second one does not roll out the workers until that is requested.
func acts() []act {
	var result []act
	for number, year := range []int{1, 4, 7} {
		begin := time.Duration(year) * 365 * day
		add := func(after time.Duration, run func(*cluster)) { result = append(result, act{begin + after, run}) }
		preparing := corev1beta1.RotationPreparing
		if number == 1 {
			preparing = corev1beta1.RotationPreparingWithoutWorkersRollout
		}
		add(0, func(c *cluster) {
			c.hold("user")
			if number == 1 {
				c.hold("user", "kubelet-0", "kubelet-1")
			}
			c.rotate(preparing, false)
		})
		add(5*day, func(c *cluster) { c.rotate(preparing, true) })
		add(9*day, func(c *cluster) {
			c.rewrite()
			if number == 1 {
				c.hold("user")
				c.rotate(corev1beta1.RotationWaitingForWorkersRollout, true)
			} else {
				c.rotate(corev1beta1.RotationPrepared, true)
			}
		})
		add(12*day, func(c *cluster) {
			c.hold()
			c.rotate(corev1beta1.RotationPrepared, true)
		})
		add(40*day, func(c *cluster) { c.rotate(corev1beta1.RotationCompleting, true) })
		add(41*day, func(c *cluster) { c.rotate(corev1beta1.RotationCompleted, true) })
	}
	return result
}

// TestADecade simulates ten years in which certificates and passwords are renewed, and all authorities and keys are rotated
// three times. The units get new material one after the other. After each of them, all units that communicate must accept each
// other: chains are verified at that time, tokens are signed and verified, and each API server can read everything that any of
// them has written into etcd.
func TestADecade(t *testing.T) {
	c := &cluster{place: newPlace(t), held: map[string]map[string][]byte{}, written: map[string]bool{}, chains: map[string]chain{}, signatures: map[string]bool{}}
	configs, todo, end := decade(), acts(), start.Add(10*365*day)
	generated := map[string]map[string]bool{}
	instants := 0
	for now := start; now.Before(end); instants++ {
		c.clock.SetTime(now)
		c.check("before the pass")
		for len(todo) > 0 && !start.Add(todo[0].after).After(now) {
			todo[0].run(c)
			todo = todo[1:]
		}
		result := c.ensure(configs)
		c.rollOut(result)
		c.cleanUp(configs, c.waiting, nothing)
		for name, item := range result.Items {
			if generated[name] == nil {
				generated[name] = map[string]bool{}
			}
			generated[name][item.Current.Name] = true
		}
		for i := range configs {
			configs[i].RestoreOnly = configs[i].Persist // all Secrets exist by now
		}
		next := now.Add(30 * day)
		for _, at := range []time.Time{result.Next, start.Add(first(todo))} {
			if at.After(now) && at.Before(next) {
				next = at
			}
		}
		now = next
	}
	for name, want := range map[string]int{
		"ca": 4, "ca-client": 4, "ca-etcd-peer": 4, "service-account-key": 4, "ssh-keypair": 4, "kube-apiserver-etcd-encryption-key": 4,
		"observability-ingress-users": 4, "kube-apiserver-static-token": 4, "vpn-seed-server-tlsauth": 1, "generic-token-kubeconfig": 7,
	} {
		if len(generated[name]) != want {
			t.Errorf("%s was generated %d times, want %d", name, len(generated[name]), want)
		}
	}
	if len(generated["kube-apiserver"]) < 50 || len(generated["ca-seed"]) < 150 || len(todo) > 0 {
		t.Errorf("kube-apiserver was generated %d times, ca-seed %d times, %d acts remain", len(generated["kube-apiserver"]), len(generated["ca-seed"]), len(todo))
	}
	total := 0
	for _, names := range generated {
		total += len(names)
	}
	t.Logf("%d instants, %d Secrets generated, %d checks of all pairs, %d chains verified", instants, total, c.checks, c.verified)
}

func first(todo []act) time.Duration {
	if len(todo) == 0 {
		return 0
	}
	return todo[0].after
}

// rotate sets the phase of the rotation of everything except ca-seed. Material without phases is rotated when the rotation
// begins.
func (c *cluster) rotate(phase corev1beta1.CredentialsRotationPhase, distributed bool) {
	begins := (phase == corev1beta1.RotationPreparing || phase == corev1beta1.RotationPreparingWithoutWorkersRollout) && !distributed
	for _, config := range decade() {
		rotation := c.rotations[config.Name]
		if begins {
			rotation.Initiated = c.clock.Now()
		}
		rotation.Phase, rotation.Distributed = phase, distributed
		switch {
		case !config.Persist:
			continue
		case config.Kind == KindSSHKeypair || config.Kind == KindBasicAuth || config.Kind == KindStaticToken:
			rotation.Phase, rotation.Distributed = "", false
		}
		c.rotations[config.Name] = rotation
	}
}

// hold withholds new material from the given units until the next call.
func (c *cluster) hold(names ...string) { c.waiting = names }

// rollOut gives the units the new material one after the other.
func (c *cluster) rollOut(result Result) {
	for _, unit := range units() {
		if slices.Contains(c.waiting, unit.name) {
			continue
		}
		wanted := map[string][]byte{}
		for _, use := range unit.uses {
			wanted[use] = c.have(result, use)
		}
		if maps.EqualFunc(wanted, c.held[unit.name], slices.Equal) {
			continue
		}
		c.held[unit.name] = wanted
		c.check("after the roll-out of " + unit.name)
	}
}

// matching returns the units with a prefix.
func (c *cluster) matching(prefix string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.held)), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
