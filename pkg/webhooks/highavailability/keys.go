// Package highavailability is the webhook that makes workloads highly available: replicas, zones, spread and tolerations of
// Deployments and StatefulSets, and the bounds of HorizontalPodAutoscalers.
//
// It reads of the target cluster: the annotations of Namespaces, what HorizontalPodAutoscalers scale within which bounds, and whether
// there is more than one Node.
package highavailability

// Path is where the webhook is served (gardener-resource-manager).
const Path = "/webhooks/high-availability-config"

// The keys of labels and annotations (gardener-resource-manager).
const (
	prefix = "high-availability-config.resources.gardener.cloud/"

	// LabelConsider is a label of namespaces whose workloads are looked at, with the value "true".
	LabelConsider = prefix + "consider"
	// LabelSkip is a label of objects that are left alone, with any value.
	LabelSkip = prefix + "skip"
	// LabelType is a label of objects whose replicas are set: the type of the component, for example "controller".
	LabelType = prefix + "type"
	// AnnotationReplicas is an annotation of objects with the number of replicas to set, instead of the one of the table.
	AnnotationReplicas = prefix + "replicas"
	// AnnotationHostSpread is an annotation of objects whose Pods have to be on different nodes.
	AnnotationHostSpread = prefix + "host-spread"
	// AnnotationFailureTolerance is an annotation of namespaces: the type of failure to tolerate, or empty.
	AnnotationFailureTolerance = prefix + "failure-tolerance-type"
	// AnnotationZones is an annotation of namespaces: the zones for their Pods, with commas in between.
	AnnotationZones = prefix + "zones"
	// AnnotationZonePinning is an annotation of namespaces whose Pods have to be in these zones.
	AnnotationZonePinning = prefix + "zone-pinning"

	// typeController is the type of components that need no second replica unless failures have to be tolerated.
	typeController = "controller"
	// toleranceZone is the type of failure for which zones have to be spread over.
	toleranceZone = "zone"
)
