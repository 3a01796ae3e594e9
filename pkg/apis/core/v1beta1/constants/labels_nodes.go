package constants

// Labels of nodes and pods.
const (
	// LabelWorkerPool is the name of a node's worker pool.
	LabelWorkerPool = "worker.gardener.cloud/pool"
	// LabelWorkerPoolDeprecated has the same value as WorkerPool. Deprecated: use that.
	LabelWorkerPoolDeprecated = "worker.garden.sapcloud.io/group"
	// LabelWorkerName is the name of the set of machines that a node belongs to.
	LabelWorkerName = "worker.gardener.cloud/name"
	// LabelWorkerKubernetesVersion is the version of kubelet on a node.
	LabelWorkerKubernetesVersion = "worker.gardener.cloud/kubernetes-version"
	// LabelWorkerPoolSystemComponents controls whether system components may run on a node.
	LabelWorkerPoolSystemComponents = "worker.gardener.cloud/system-components"
	// LabelWorkerCRIName is the container runtime interface of a node.
	LabelWorkerCRIName = "worker.gardener.cloud/cri-name"
	// LabelPrefixContainerRuntimeWorker is the prefix of labels with the container runtimes of a node.
	LabelPrefixContainerRuntimeWorker = "containerruntime.worker.gardener.cloud/"
	// LabelWorkerPoolNodeAgentSecretName is the name of the Secret that configures a node.
	LabelWorkerPoolNodeAgentSecretName = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// LabelNodeLocalDNSEnabled reports whether a node has a DNS cache.
	LabelNodeLocalDNSEnabled = "networking.gardener.cloud/node-local-dns-enabled"
	// LabelNodeRoleControlPlane marks a node that runs the control plane of a self-hosted Shoot.
	LabelNodeRoleControlPlane = "node-role.kubernetes.io/control-plane"
	// LabelNodeCriticalComponent marks pods that must be ready before others run on a new node.
	LabelNodeCriticalComponent = "node.gardener.cloud/critical-component"
	// LabelMaintenanceRestart marks Deployments that are restarted in the maintenance window.
	LabelMaintenanceRestart = "maintenance.gardener.cloud/restart"
	// LabelInjectGardenKubeconfig controls whether a pod gets a kubeconfig for the garden.
	LabelInjectGardenKubeconfig = "extensions.gardener.cloud/inject-garden-kubeconfig"
)
