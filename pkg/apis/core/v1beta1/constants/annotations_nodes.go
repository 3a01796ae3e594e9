package constants

// Annotations of nodes, pods and their configuration.
const (
	// AnnotationNodeWaitForCSINode is the prefix of annotations with CSI drivers that a new node waits for.
	AnnotationNodeWaitForCSINode = "node.gardener.cloud/wait-for-csi-node-"
	// AnnotationNodeAgentReconciliationDelay is the time after which a node applies a new configuration.
	AnnotationNodeAgentReconciliationDelay = "node-agent.gardener.cloud/reconciliation-delay"
	// AnnotationNodeAgentAppliedAt of a Node is when it applied its configuration (RFC 3339). Gardener does not have it.
	AnnotationNodeAgentAppliedAt = "node-agent.gardener.cloud/applied-at"
	// AnnotationNodeAgentFirstNode of a Secret with a configuration is the node that applies it before the others of its pool, with
	// the checksum of the configuration: <node>/<checksum>. Gardener does not have it.
	AnnotationNodeAgentFirstNode = "node-agent.gardener.cloud/first-node"
	// AnnotationNodeAgentTriedChecksum of the Secret is the checksum of the configuration with which the first node has run well, so
	// that the others apply it. Without it, they do not wait. Gardener does not have it.
	AnnotationNodeAgentTriedChecksum = "node-agent.gardener.cloud/tried-checksum"
	// AnnotationChecksumCloudConfigData is the checksum of the configuration that a node has applied.
	AnnotationChecksumCloudConfigData = "checksum/cloud-config-data"
	// AnnotationChecksumDataScript is the checksum of a configuration of nodes, on its Secret.
	AnnotationChecksumDataScript = "checksum/data-script"
	// AnnotationNodeAgentSerialReconciliation lets nodes apply a configuration one after the other.
	AnnotationNodeAgentSerialReconciliation = "reconciliation.osc.node-agent.gardener.cloud/serial"
	// AnnotationStaticManifestsShootSelector selects the Shoots that get the manifests of a Secret.
	AnnotationStaticManifestsShootSelector = "static-manifests.shoot.gardener.cloud/selector"
	// AnnotationAutoscalerScaleDownUtilizationThreshold is the share of a node's capacity below which it is unneeded.
	AnnotationAutoscalerScaleDownUtilizationThreshold = "autoscaler.gardener.cloud/scale-down-utilization-threshold"
	// AnnotationAutoscalerScaleDownGPUUtilizationThreshold is the share of a node's GPUs below which it is unneeded.
	AnnotationAutoscalerScaleDownGPUUtilizationThreshold = "autoscaler.gardener.cloud/scale-down-gpu-utilization-threshold"
	// AnnotationAutoscalerScaleDownUnneededTime is the time for which a node must have been unneeded.
	AnnotationAutoscalerScaleDownUnneededTime = "autoscaler.gardener.cloud/scale-down-unneeded-time"
	// AnnotationAutoscalerScaleDownUnreadyTime is the time for which an unneeded node must not have been ready.
	AnnotationAutoscalerScaleDownUnreadyTime = "autoscaler.gardener.cloud/scale-down-unready-time"
	// AnnotationAutoscalerMaxNodeProvisionTime is the time in which a new node must become ready.
	AnnotationAutoscalerMaxNodeProvisionTime = "autoscaler.gardener.cloud/max-node-provision-time"
	// AnnotationEvictionRequirementsDownscaleRestriction defines when pods may be evicted to reduce their resources:
	// in-maintenance-window-only or never.
	AnnotationEvictionRequirementsDownscaleRestriction = "eviction-requirements.autoscaling.gardener.cloud/downscale-restriction"
)
