package shoot

import (
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/operatingsystemconfig"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// Names of the bundles that only a Shoot with workers has. Those with the prefix prefixNodes contain one object of an extension each,
// except that a pool has two OperatingSystemConfigs.
const (
	bundleCloudProvider = "cloudprovider"

	prefixNodes           = "shoot-nodes-"
	bundleInfrastructure  = prefixNodes + "infrastructure"
	bundleControlPlane    = prefixNodes + "controlplane"
	bundleNetwork         = prefixNodes + "network"
	bundleWorker          = prefixNodes + "worker"
	prefixOperatingSystem = prefixNodes + "osc-"
	prefixRuntime         = prefixNodes + "containerruntime-"

	bundleAPIServerRights = prefixShoot + "kube-apiserver"
	bundleNodeAgent       = prefixShoot + "gardener-node-agent"
)

// Limits of operations of extensions for nodes, if they differ from extensionTimeout (Gardener).
const (
	infrastructureTimeout = 10 * time.Minute
	workerTimeout         = 10 * time.Minute
)

// Machines is what extensions have reported about the nodes of a Shoot. Reports of operations in progress are missing.
type Machines struct {
	// Finished are the bundles whose extension has finished the operation for this generation of the Shoot.
	Finished map[string]bool
	// Infrastructure is the status of the Infrastructure, or nil.
	Infrastructure *extensionsv1alpha1.InfrastructureStatus
	// Pools are the pools of the existing Worker, by name.
	Pools map[string]extensionsv1alpha1.WorkerPool
	// Deployments are the sets of machines of the existing Worker.
	Deployments []extensionsv1alpha1.MachineDeployment
	// UserData are the names of Secrets with user data for new machines, and Configs what nodes have to apply, as the webhooks of
	// infrastructures have changed it; both by the key of a pool.
	UserData map[string]string
	Configs  map[string]extensionsv1alpha1.OperatingSystemConfig
	// Stamps identify the last operations for the OperatingSystemConfigs.
	Stamps string
	// Left is what is known about nodes with old keys.
	Left Left
}

// pools returns the worker pools.
func (in Inputs) pools() ([]workerpool.Pool, error) { return workerpool.Of(in.Shoot, in.CloudProfile) }

// kindRow is an object of an extension that nodes need.
type kindRow struct {
	name, kind string
	objects    func() ([]client.Object, error)
	// status names the bundles from whose reported status the object is computed.
	status []string
	// needs are the bundles that must be healthy before.
	needs        []string
	deletedAfter []string
}

// nodeParts returns the parts of a Shoot with workers, in the order of their creation: what machines need from the infrastructure,
// what they run, and the machines. They are deleted in the reverse order, the infrastructure after the API server.
func (in Inputs) nodeParts() []table.Part {
	configs, runtimes := in.operatingSystemRows(), in.runtimeRows()
	ofConfigs, ofRuntimes := namesOf(configs), namesOf(runtimes)
	running := []string{bundleInfrastructure, bundleResourceManager}
	rows := slices.Concat(
		[]kindRow{
			{
				bundleInfrastructure, "Infrastructure", in.infrastructure, nil, nil,
				[]string{bundleControlPlane, bundleNetwork, bundleWorker, bundleAPIServer},
			},
			{
				bundleControlPlane, "ControlPlane", in.controlPlaneObject, []string{bundleInfrastructure}, running,
				[]string{bundleNetwork, bundleWorker},
			},
			{bundleNetwork, "Network", in.network, nil, append(running, bundleControlPlane), slices.Concat([]string{bundleWorker}, ofRuntimes)},
		},
		configs,
		[]kindRow{{
			bundleWorker, "Worker", in.worker, append([]string{bundleInfrastructure}, ofConfigs...),
			slices.Concat(running, ofConfigs, []string{bundleControlPlane, bundleNodeAgent}, in.machineManagers()), append([]string{bundleIngress}, ofRuntimes...),
		}},
		runtimes,
	)
	parts := []table.Part{in.cloudProviderPart(namesOf(rows))}
	for _, row := range rows {
		parts = append(parts, in.nodePart(row))
	}
	return append(append(parts, in.oldConfigs(ofConfigs)...), in.nodePartsInShoot()...)
}

// nodePart returns the part of a row. While the Shoot hibernates, its objects are reconciled before the programs of the control plane
// stop, so they do not wait for those.
func (in Inputs) nodePart(row kindRow) table.Part {
	credentials := table.Applied(bundleCloudProvider, bundleReferenced)
	asleep := slices.DeleteFunc(slices.Clone(row.needs), func(name string) bool {
		return name == bundleResourceManager || name == bundleMachines || isOfShoot(name)
	})
	return table.Part{
		Name: row.name, Objects: row.objects, ReadsCluster: true,
		Unknown: table.Join(in.heldForDeletion(), in.unknownSecrets(), in.unknownCloudProfile(), in.unfinished(row.status)),
		Needs:   []table.Need{credentials, table.Healthy(row.needs...)}, NeedsAsleep: []table.Need{credentials, table.Healthy(asleep...)},
		DeletedAfter: append([]string{}, row.deletedAfter...), Confirmed: true, Adjust: in.adjustKind(row.kind),
	}
}

func (in Inputs) cloudProviderPart(users []string) table.Part {
	part := table.Part{Name: bundleCloudProvider, Objects: in.cloudProvider, DeletedAfter: users, Unknown: in.unknownReferences("with credentials", in.Credentials...)}
	if len(in.Credentials) == 0 {
		part.Absent, part.Removed = "the Shoot has no credentials", true
	}
	return part
}

// nodePartsInShoot returns what nodes and the API server need in the shoot.
func (in Inputs) nodePartsInShoot() []table.Part {
	asleep, needs := in.hibernated(), []table.Need{table.Applied(bundleResourceManager)}
	return []table.Part{
		{Name: bundleAPIServerRights, Target: table.Shoot, Objects: in.apiServerRights, Unchanged: asleep, Needs: needs},
		{
			Name: bundleNodeAgent, Target: table.Shoot, Objects: in.nodeAgent, Unchanged: asleep || in.ConfigsKnown, Needs: needs,
			Unknown: in.unfinished(namesOf(in.operatingSystemRows())), DeletedAfter: []string{bundleWorker}, Adjust: in.adjustNodeAgent,
		},
	}
}

// operatingSystemRows returns a row for the OperatingSystemConfigs of each pool. They contain the key of the pool in their name, so that
// the previous ones remain until no machine has them.
func (in Inputs) operatingSystemRows() []kindRow {
	pools, err := in.pools()
	if err != nil {
		return []kindRow{{prefixOperatingSystem + "invalid", "OperatingSystemConfig", func() ([]client.Object, error) { return nil, err }, nil, nil, []string{bundleWorker}}}
	}
	var rows []kindRow
	for _, pool := range pools {
		rows = append(rows, kindRow{
			prefixOperatingSystem + pool.Key(), "OperatingSystemConfig", in.operatingSystem(pool), nil,
			[]string{bundleInfrastructure, bundleResourceManager, bundleControlPlane}, []string{bundleWorker},
		})
	}
	return rows
}

// runtimeRows returns a row for each container runtime of each pool.
func (in Inputs) runtimeRows() []kindRow {
	var rows []kindRow
	for _, worker := range in.Shoot.Spec.Provider.Workers {
		if worker.CRI == nil {
			continue
		}
		for _, runtime := range worker.CRI.ContainerRuntimes {
			rows = append(rows, kindRow{
				prefixRuntime + runtime.Type + "-" + worker.Name, "ContainerRuntime", in.containerRuntime(worker, runtime), nil,
				[]string{bundleResourceManager}, []string{},
			})
		}
	}
	return rows
}

// oldConfigs returns the parts of OperatingSystemConfigs of keys that no pool has any more, and of removed container runtimes. They
// are kept until the extension has replaced all machines and no node has the key, and while the declared pools are invalid, because their
// keys are then not known.
func (in Inputs) oldConfigs(wanted []string) []table.Part {
	var parts []table.Part
	_, invalid := in.pools()
	replaced := in.Machines.Finished[bundleWorker] && invalid == nil
	wanted = append(wanted, namesOf(in.runtimeRows())...)
	for _, key := range in.Emitted {
		is := strings.HasPrefix(key.Name, prefixOperatingSystem) || strings.HasPrefix(key.Name, prefixRuntime)
		if !is || key.Namespace != in.Namespace || slices.Contains(wanted, key.Name) {
			continue
		}
		gone := replaced && !in.Machines.Left.keeps(strings.TrimPrefix(key.Name, prefixOperatingSystem))
		parts = append(parts, table.Part{
			Name: key.Name, Absent: "no pool has it", Removed: gone, Unchanged: !gone,
			DeletedAfter: []string{}, Confirmed: true,
		})
	}
	return parts
}

// nodeBundles returns the bundles of extensions for nodes that need the API server.
func (in Inputs) nodeBundles() []string {
	if !in.hasWorkers() {
		return nil
	}
	return slices.Concat(
		[]string{bundleControlPlane, bundleNetwork}, namesOf(in.operatingSystemRows()), []string{bundleWorker}, namesOf(in.runtimeRows()),
	)
}

func namesOf(rows []kindRow) []string {
	var names []string
	for _, row := range rows {
		names = append(names, row.name)
	}
	return names
}

// unfinished names the operations of extensions whose results are not known yet for this generation of the Shoot. A bundle that is
// computed from a result keeps its revision until then: a dependency alone would apply one that was computed from the previous result.
func (in Inputs) unfinished(names []string) string {
	var missing []string
	for _, name := range names {
		if !in.Machines.Finished[name] {
			missing = append(missing, strings.TrimPrefix(name, prefixNodes))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "extensions have not finished: " + strings.Join(missing, ", ")
}

// isNodeOperation reports whether a bundle contains an object of an extension that nodes need.
func isNodeOperation(name string) bool { return strings.HasPrefix(name, prefixNodes) }

// isMachine reports whether a bundle is deleted with the flow's objects in the cluster: the Worker, because nodes need these objects
// until they are gone, and what runs on nodes.
func isMachine(name string) bool {
	return name == bundleWorker || strings.HasPrefix(name, prefixRuntime)
}

// nodeLimits returns how long the operations of extensions for nodes may take.
func nodeLimits() map[string]time.Duration {
	return map[string]time.Duration{bundleInfrastructure: infrastructureTimeout, bundleWorker: workerTimeout}
}

// sshAccess reports whether nodes accept SSH connections.
func (in Inputs) sshAccess() bool {
	settings := in.Shoot.Spec.Provider.WorkersSettings
	return in.hasWorkers() && (settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled)
}

// podNetworks returns the networks of Pods: of the Shoot, of the Seed's defaults for Shoots, or the default. It is empty without workers.
func (in Inputs) podNetworks() []string {
	if !in.hasWorkers() {
		return nil
	}
	networks := []string{}
	if status := in.Shoot.Status.Networking; status != nil {
		networks = status.Pods
	}
	networking, defaults := in.Shoot.Spec.Networking, in.Seed.Spec.Networks.ShootDefaults
	switch {
	case len(networks) > 0:
	case networking != nil && networking.Pods != nil && *networking.Pods != "":
		networks = []string{*networking.Pods}
	case defaults != nil && defaults.Pods != nil && *defaults.Pods != "":
		networks = []string{*defaults.Pods}
	default:
		networks = []string{defaultPods}
	}
	return networks
}

// defaultPods is the network of Pods if neither the Shoot nor the Seed defines one (Gardener).
const defaultPods = "100.128.0.0/11"

// configNames returns the names of the OperatingSystemConfigs of a pool: for new machines, and for nodes.
func configNames(key string) (provision, reconcile string) {
	return key + operatingsystemconfig.SuffixProvision, key + operatingsystemconfig.SuffixReconcile
}

// proxyEnabled reports whether the cluster has kube-proxy.
func (in Inputs) proxyEnabled() bool {
	proxy := in.Shoot.Spec.Kubernetes.KubeProxy
	return proxy == nil || proxy.Enabled == nil || *proxy.Enabled
}

// adjustNodeAgent records what the configuration of nodes was computed from.
func (in Inputs) adjustNodeAgent(bundle *flow.Bundle) {
	bundle.Choices = map[string]string{choiceConfigs: in.ConfigsStamp}
}
