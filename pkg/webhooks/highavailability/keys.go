// Package highavailability implements the webhook that makes workloads highly available. It sets the replicas, zones,
// spread and tolerations of Deployments and StatefulSets, and the bounds of HorizontalPodAutoscalers.
//
// It reads from the target cluster the annotations of Namespaces, the targets and bounds of HorizontalPodAutoscalers, and
// whether there is more than one Node.
package highavailability

// Path is the path at which gardener-resource-manager serves the webhook.
const Path = "/webhooks/high-availability-config"

// The keys of labels and annotations, as in gardener-resource-manager.
const (
	prefix = "high-availability-config.resources.gardener.cloud/"

	// LabelConsider with the value "true" on a namespace opts in its workloads.
	LabelConsider = prefix + "consider"
	// LabelSkip with any value on an object opts it out.
	LabelSkip = prefix + "skip"
	// LabelType on an object makes the webhook set its replicas. The value is the type of the component, such as
	// "controller".
	LabelType = prefix + "type"
	// AnnotationReplicas on an object is the number of replicas to set, instead of the default.
	AnnotationReplicas = prefix + "replicas"
	// AnnotationHostSpread on an object requires its Pods to run on different nodes.
	AnnotationHostSpread = prefix + "host-spread"
	// AnnotationFailureTolerance on a namespace is the type of failure to tolerate, or empty.
	AnnotationFailureTolerance = prefix + "failure-tolerance-type"
	// AnnotationZones on a namespace is the comma-separated list of zones for its Pods.
	AnnotationZones = prefix + "zones"
	// AnnotationZonePinning on a namespace requires its Pods to run in these zones.
	AnnotationZonePinning = prefix + "zone-pinning"

	// typeController is the type of components that need a second replica only if failures must be tolerated.
	typeController = "controller"
	// toleranceZone is the failure tolerance type that requires Pods to be spread over zones.
	toleranceZone = "zone"
)
