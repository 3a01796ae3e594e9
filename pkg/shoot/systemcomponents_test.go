package shoot

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// bundlesOf returns the names of the bundles of a plan.
func bundlesOf(plan flow.Plan) []string {
	var names []string
	for _, bundle := range plan.Bundles {
		names = append(names, bundle.Name)
	}
	return names
}

// TestSystemComponents checks which system components a Shoot has, and that operations do not wait for their health.
func TestSystemComponents(t *testing.T) {
	usual := []string{bundleProxy, prefixProxy + "a-v1.37.1", bundleCoreDNS, bundleMetricsServer, bundleTunnelAgents, bundleNodeProblems, bundleMachinesRBAC, bundleClusterScalingShoot}
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   []string
	}{
		"defaults": {func(*Inputs) {}, usual},
		"no kube-proxy": {func(in *Inputs) {
			in.Shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Enabled: ptr.To(false)}
		}, usual[2:]},
		"a DNS cache": {func(in *Inputs) {
			in.Shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{NodeLocalDNS: &corev1beta1.NodeLocalDNS{Enabled: true}}
		}, append([]string{bundleNodeLocalDNS}, usual...)},
		"a gateway":   {exposedBy(exposure.GatewayAPI), append([]string{bundleServerProxy}, usual...)},
		"hibernating": {hibernate, nil},
		"no workers":  {func(in *Inputs) { in.Shoot.Spec.Provider.Workers = nil }, nil},
	} {
		in := upWithWorkers(t, test.change)
		all := in.systemBundles()
		var got []string
		for _, bundle := range planOf(t, in).Bundles {
			if !slices.Contains(all, bundle.Name) {
				continue
			}
			got = append(got, bundle.Name)
			if bundle.Labels[flow.LabelHealthAwaited] != "false" {
				t.Errorf("%s: operations wait for the health of %s", name, bundle.Name)
			}
			if bundle.Labels[labelOrigin] != originGardener {
				t.Errorf("%s: %s has the labels %v", name, bundle.Name, bundle.Labels)
			}
		}
		want := slices.Clone(test.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestSystemComponentsAreSwitchedOff checks that components that a Shoot no longer has are removed.
func TestSystemComponentsAreSwitchedOff(t *testing.T) {
	in := upWithWorkers(t, func(in *Inputs) {
		in.Shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Enabled: ptr.To(false)}
	})
	removed := func() []string {
		var names []string
		for _, tombstone := range planOf(t, in).Tombstones {
			names = append(names, tombstone.Name)
		}
		return names
	}
	if got := removed(); !slices.Equal(got, []string{bundleProxy, prefixProxy + "a-v1.37.1"}) {
		t.Errorf("%v are removed", got)
	}
	if hibernate(&in); slices.Contains(removed(), bundleProxy) {
		t.Error("the resource-manager of a Shoot that hibernates cannot remove kube-proxy")
	}
}

// TestOldProxiesStay checks that the previous version of kube-proxy is kept until it is known that no node has it, and that a version that
// returns is not removed.
func TestOldProxiesStay(t *testing.T) {
	const old = prefixProxy + "a-v1.37.1"
	in := upWithWorkers(t, func(in *Inputs) { in.Shoot.Spec.Kubernetes.Version = "1.37.2" })
	state := func() (bundles []string, removed bool) {
		plan := planOf(t, in)
		removed = slices.ContainsFunc(plan.Tombstones, func(tombstone flow.Tombstone) bool { return tombstone.Name == old })
		return bundlesOf(plan), removed
	}
	for name, test := range map[string]struct {
		unused  map[string]bool
		removed bool
	}{
		"not known": {nil, false}, "nodes have it": {map[string]bool{old: false}, false}, "no node has it": {map[string]bool{old: true}, true},
	} {
		in.ProxiesUnused = test.unused
		bundles, removed := state()
		if removed != test.removed || !slices.Contains(bundles, prefixProxy+"a-v1.37.2") {
			t.Errorf("%s: removed %t, the plan has %v", name, removed, bundles)
		}
	}
	in.Shoot.Spec.Provider.Workers[0].Machine.Image = nil
	if _, removed := state(); removed {
		t.Error("it is removed although the declared pools are invalid")
	}
	back := upWithWorkers(t, func(in *Inputs) { in.ProxiesUnused = map[string]bool{old: true} })
	if names := back.oldProxyBundles(); len(names) > 0 {
		t.Errorf("the declared versions %v count as previous ones", names)
	}
}

// TestSettingsOfSystemComponents checks that each field of a Shoot for system components changes the component, and nothing else but the
// Cluster and the configuration of nodes.
func TestSettingsOfSystemComponents(t *testing.T) {
	proxies := []string{bundleProxy, prefixProxy + "a-v1.37.1"}
	dns := func(change func(*corev1beta1.CoreDNS)) func(*corev1beta1.ShootSpec) {
		return func(spec *corev1beta1.ShootSpec) {
			spec.SystemComponents = &corev1beta1.SystemComponents{CoreDNS: &corev1beta1.CoreDNS{}}
			change(spec.SystemComponents.CoreDNS)
		}
	}
	for name, test := range map[string]struct {
		change func(*corev1beta1.ShootSpec)
		want   []string
		text   string
	}{
		"spec.kubernetes.kubeProxy.mode": {func(spec *corev1beta1.ShootSpec) {
			spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Mode: ptr.To(corev1beta1.ProxyModeNFTables)}
		}, proxies, "- name: cleanup"},
		"spec.kubernetes.kubeProxy.featureGates": {func(spec *corev1beta1.ShootSpec) {
			spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"A": true}}}
		}, proxies, "+ ConfigMap kube-system/kube-proxy-config-"},
		"spec.systemComponents.coreDNS.autoscaling": {dns(func(dns *corev1beta1.CoreDNS) {
			dns.Autoscaling = &corev1beta1.CoreDNSAutoscaling{Mode: corev1beta1.CoreDNSAutoscalingModeClusterProportional}
		}), []string{bundleCoreDNS}, "coredns-autoscaler"},
		"spec.systemComponents.coreDNS.rewriting": {dns(func(dns *corev1beta1.CoreDNS) {
			dns.Rewriting = &corev1beta1.CoreDNSRewriting{CommonSuffixes: []string{"example.org"}}
		}), []string{bundleCoreDNS}, "{1}.example.org"},
	} {
		before := upWithWorkers(t)
		after := upWithWorkers(t, func(in *Inputs) { test.change(&in.Shoot.Spec) })
		text, changed := changes(t, planOf(t, before), planOf(t, after))
		want := []string{after.key(bundleNamespace).String()}
		for _, each := range test.want {
			want = append(want, after.key(each).String())
		}
		slices.Sort(want)
		slices.Sort(changed)
		if !slices.Equal(changed, want) || !strings.Contains(text, test.text) {
			t.Errorf("%s changes %v, want %v and %q:\n%s", name, changed, want, test.text, text)
		}
	}
}

// TestDNSForKubelet checks with which DNS servers kubelet configures Pods: a cache that cannot have the address of the DNS server of the cluster must
// be known to them.
func TestDNSForKubelet(t *testing.T) {
	cached := func(mode corev1beta1.ProxyMode, families ...corev1beta1.IPFamily) func(*Inputs) {
		return func(in *Inputs) {
			in.Shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{NodeLocalDNS: &corev1beta1.NodeLocalDNS{Enabled: true}}
			in.Shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Mode: ptr.To(mode)}
			in.Shoot.Spec.Networking.IPFamilies = families
		}
	}
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"no cache":            {func(*Inputs) {}, "100.64.0.10"},
		"iptables":            {cached(corev1beta1.ProxyModeIPTables), "100.64.0.10"},
		"IPVS":                {cached(corev1beta1.ProxyModeIPVS), "169.254.20.10"},
		"IPVS, IPv6 is first": {cached(corev1beta1.ProxyModeIPVS, corev1beta1.IPFamilyIPv6), "fd30:1319:f1e:230b::1"},
	} {
		in := known(t, withWorkers, test.change)
		if got, err := in.dnsForKubelet(); err != nil || len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: %v, want %s: %v", name, got, test.want, err)
		}
	}
}
