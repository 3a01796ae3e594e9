package constants

// Taints.
const (
	// TaintSeedProtected keeps Shoots of other namespaces than garden away from a Seed.
	TaintSeedProtected = "seed.gardener.cloud/protected"
	// TaintNodeCriticalComponentsNotReady keeps pods away from a new node until its critical components are ready.
	TaintNodeCriticalComponentsNotReady = "node.gardener.cloud/critical-components-not-ready"
)
