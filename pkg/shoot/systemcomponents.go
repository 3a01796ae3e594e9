package shoot

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverproxy"
	"github.com/trellis-k8s/trellis/pkg/component/kubeproxy"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// Names of the bundles of system components, which run on the nodes of a Shoot.
const (
	bundleProxy         = prefixShoot + "kube-proxy"
	prefixProxy         = bundleProxy + "-"
	bundleCoreDNS       = prefixShoot + "coredns"
	bundleMetricsServer = prefixShoot + "metrics-server"
	bundleNodeLocalDNS  = prefixShoot + "node-local-dns"
	bundleNodeProblems  = prefixShoot + "node-problem-detector"
	bundleServerProxy   = prefixShoot + apiserverproxy.Name

	prefixAddon     = "shoot-addon-"
	bundleDashboard = prefixAddon + "kubernetes-dashboard"
	bundleIngress   = prefixAddon + "nginx-ingress"

	// The Vertical Pod Autoscaler: its programs in the control plane, and what they need in the cluster.
	bundleScaling        = "vpa"
	bundleScalingInShoot = prefixShoot + "vpa"
)

// systemRow is a component in the cluster.
type systemRow struct {
	name    string
	objects func() ([]client.Object, error)
	// unknown names inputs that are not known yet, absent is why the Shoot does not have the component; both may be empty.
	unknown, absent string
	// needs are the bundles whose objects must exist before.
	needs []string
	// early is set for components whose objects represent resources of the infrastructure, which are deleted before the machines.
	early bool
}

// systemRows returns the system components of a Shoot with workers.
func (in Inputs) systemRows() []systemRow {
	rows := []systemRow{
		{name: bundleProxy, objects: in.proxy, unknown: in.unknownSecrets(), absent: in.withoutProxy()},
		{name: bundleCoreDNS, objects: in.coreDNS},
		{name: bundleNodeLocalDNS, objects: in.nodeLocalDNS, absent: in.withoutNodeLocalDNS(), needs: []string{bundleCoreDNS}},
		{name: bundleMetricsServer, objects: in.metricsServer, unknown: in.unknownSecrets()},
		{name: bundleTunnelAgents, objects: in.tunnelAgents, unknown: in.unknownSecrets()},
		{name: bundleServerProxy, objects: in.serverProxy, unknown: in.unknownAdvertised(), absent: in.withoutServerProxy()},
		{name: bundleNodeProblems, objects: in.nodeProblemDetector, needs: []string{bundleSystem}},
	}
	return slices.Concat(rows, in.machineRows(), in.addonRows(), in.proxyRows())
}

// addonRows returns the addons, which users can have in clusters for evaluation.
func (in Inputs) addonRows() []systemRow {
	rows := []systemRow{
		{name: bundleDashboard, objects: in.dashboard, absent: "spec.addons.kubernetesDashboard is not enabled"},
		{name: bundleIngress, objects: in.ingress, absent: "spec.addons.nginxIngress is not enabled", early: true},
	}
	if addons := in.Shoot.Spec.Addons; addons != nil && addons.KubernetesDashboard != nil && addons.KubernetesDashboard.Enabled {
		rows[0].absent = ""
	}
	if in.hasIngressController() {
		rows[1].absent = ""
	}
	return rows
}

// systemParts returns the parts of the system components. An operation does not wait until they are healthy, because they need nodes, and
// users can break them: the condition SystemComponentsHealthy reports it. They run until the machines are gone, because Pods need them
// until then.
func (in Inputs) systemParts() []table.Part {
	if !in.hasWorkers() {
		return nil
	}
	parts := []table.Part{in.scalingInShootPart()}
	for _, row := range in.systemRows() {
		after := []string{bundleWorker}
		if row.early {
			after = []string{}
		}
		parts = append(parts, table.Part{
			Name: row.name, Target: table.Shoot, Objects: row.objects, Unknown: row.unknown, Absent: row.absent, Removed: true,
			Unchanged: in.hibernated(), Needs: []table.Need{table.Applied(append([]string{bundleResourceManager, bundleScalingInShoot}, row.needs...)...)},
			DeletedAfter: after, Adjust: flow.AwaitNoHealth,
		})
	}
	return append(parts, in.oldProxies()...)
}

// systemBundles returns the bundles of the system components, including those of previous versions.
func (in Inputs) systemBundles() []string {
	var names []string
	for _, part := range in.systemParts() {
		names = append(names, part.Name)
	}
	return names
}

// withoutProxy returns why the cluster has no kube-proxy, empty if it has one.
func (in Inputs) withoutProxy() string {
	if in.proxyEnabled() {
		return ""
	}
	return "spec.kubernetes.kubeProxy.enabled is false"
}

// withoutNodeLocalDNS returns why nodes have no DNS cache, empty if they have one.
func (in Inputs) withoutNodeLocalDNS() string {
	components := in.Shoot.Spec.SystemComponents
	if components != nil && components.NodeLocalDNS != nil && components.NodeLocalDNS.Enabled {
		return ""
	}
	return "spec.systemComponents.nodeLocalDNS is not enabled"
}

// proxyRows returns a row for kube-proxy of each pool and version. If the declared pools are invalid, there are none, and existing ones
// are kept.
func (in Inputs) proxyRows() []systemRow {
	pools, err := in.proxyPools()
	if err != nil {
		return nil
	}
	var rows []systemRow
	for _, pool := range pools {
		rows = append(rows, systemRow{
			name: prefixProxy + pool.Suffix(), objects: in.proxyOf(pool), unknown: in.unknownSecrets(), absent: in.withoutProxy(), needs: []string{bundleProxy},
		})
	}
	return rows
}

// oldProxies returns the parts of kube-proxy for pools and versions that the Shoot no longer declares. Each is kept until no node has
// them: nodes are replaced or updated one after the other.
func (in Inputs) oldProxies() []table.Part {
	var parts []table.Part
	for _, name := range in.oldProxyBundles() {
		unused := in.ProxiesUnused[name]
		parts = append(parts, table.Part{
			Name: name, Target: table.Shoot, Absent: "no pool has it", Removed: unused, Unchanged: in.hibernated() || !unused,
			Needs: []table.Need{table.Applied(bundleResourceManager)}, DeletedAfter: []string{bundleWorker},
		})
	}
	return parts
}

// oldProxyBundles returns the bundles of kube-proxy for pools and versions that the Shoot no longer declares. There are none while the
// declared pools are invalid.
func (in Inputs) oldProxyBundles() []string {
	pools, err := in.proxyPools()
	if err != nil || !in.hasWorkers() {
		return nil
	}
	var names []string
	for _, key := range in.Emitted {
		suffix, is := strings.CutPrefix(key.Name, prefixProxy)
		declared := slices.ContainsFunc(pools, func(pool kubeproxy.Pool) bool { return pool.Suffix() == suffix })
		if is && key.Namespace == in.Namespace && !declared {
			names = append(names, key.Name)
		}
	}
	return names
}

// proxyMode returns how Services are implemented.
func (in Inputs) proxyMode() corev1beta1.ProxyMode {
	proxy := ptr.Deref(in.Shoot.Spec.Kubernetes.KubeProxy, corev1beta1.KubeProxyConfig{})
	return ptr.Deref(proxy.Mode, corev1beta1.ProxyModeIPTables)
}

// scalingPart returns the part of the programs of the Vertical Pod Autoscaler. They do not run while the Shoot hibernates.
func (in Inputs) scalingPart() table.Part {
	unknown := []string{in.unknownSecrets()}
	for _, account := range vpa.Programs() {
		unknown = append(unknown, in.unknownToken(bundleScaling, account))
	}
	absent := table.Join(in.withoutScaling(), in.asleep())
	return table.Part{
		Name: bundleScaling, Objects: in.scaling, Absent: absent, Removed: true, Unknown: table.Join(unknown...), DeletedAfter: []string{},
		Needs: []table.Need{in.ready(bundleResourceManager), table.RolledOut(bundleAPIServer), table.Applied(bundleScalingInShoot)},
	}
}

// scalingInShootPart returns the part of what they need in the cluster.
func (in Inputs) scalingInShootPart() table.Part {
	return table.Part{
		Name: bundleScalingInShoot, Target: table.Shoot, Objects: in.scalingInShoot, Absent: in.withoutScaling(), Removed: true,
		Unchanged: in.hibernated(), Unknown: in.unknownSecrets(), Needs: []table.Need{table.Applied(bundleResourceManager)},
		DeletedAfter: []string{bundleWorker},
	}
}

// withoutScaling returns why the cluster has no Vertical Pod Autoscaler, empty if it has one.
func (in Inputs) withoutScaling() string {
	settings := in.Shoot.Spec.Kubernetes.VerticalPodAutoscaler
	if in.hasWorkers() && settings != nil && settings.Enabled {
		return ""
	}
	return "spec.kubernetes.verticalPodAutoscaler is not enabled"
}
