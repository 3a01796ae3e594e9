package v1alpha1

// ConditionType is the name of a condition.
type ConditionType string

// The condition types of a ManagedResource. Each has one owning controller.
const (
	// ResourcesApplied is True when all objects are applied to the target cluster.
	ResourcesApplied ConditionType = "ResourcesApplied"
	// ResourcesHealthy is True when all objects are present and healthy.
	ResourcesHealthy ConditionType = "ResourcesHealthy"
	// ResourcesProgressing is True while an object is being rolled out.
	ResourcesProgressing ConditionType = "ResourcesProgressing"
	// Ready sums the others up, for tools that know conditions in general, such as Flux (kstatus): it is True when the
	// objects are applied, healthy and rolled out. Whoever writes one of the others writes it, too.
	Ready ConditionType = "Ready"
)

// ConditionTypes returns all types of conditions that a resource-manager sets.
func ConditionTypes() []ConditionType {
	return []ConditionType{ResourcesApplied, ResourcesHealthy, ResourcesProgressing, Ready}
}

// ConditionStatus is the status of a condition.
type ConditionStatus string

// The statuses of a condition.
const (
	// ConditionTrue means that the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means that the condition does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means that it is not known whether the condition holds.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing means that work towards the condition is under way.
	ConditionProgressing ConditionStatus = "Progressing"
)

// The reasons of ResourcesApplied.
const (
	// ReasonApplyProgressing goes with status Progressing: a changed set of objects is being applied.
	ReasonApplyProgressing = "ApplyProgressing"
	// ReasonApplySucceeded goes with status True: all objects are applied.
	ReasonApplySucceeded = "ApplySucceeded"
	// ReasonApplyFailed goes with status False: at least one object could not be applied.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonDecodingFailed goes with status False: at least one manifest could not be read. What could be
	// read was applied, and nothing was pruned.
	ReasonDecodingFailed = "DecodingFailed"
	// ReasonCannotReadSecret goes with status False: a referenced Secret could not be read. What could be
	// read was applied, and nothing was pruned.
	ReasonCannotReadSecret = "CannotReadSecret"
	// ReasonDeletionPending goes with status Progressing: objects are being deleted.
	ReasonDeletionPending = "DeletionPending"
	// ReasonDeletionFailed goes with status False: at least one object could not be deleted.
	ReasonDeletionFailed = "DeletionFailed"
	// ReasonReleaseOfOrphanedResourcesFailed goes with status False: an object in mode Ignore could not be released.
	ReasonReleaseOfOrphanedResourcesFailed = "ReleaseOfOrphanedResourcesFailed"
	// ReasonManagedResourceIgnored goes with every condition of a ManagedResource that carries AnnotationIgnore.
	ReasonManagedResourceIgnored = "ManagedResourceIgnored"
	// ReasonDependencyNotReady goes with status Progressing: a ManagedResource that has to come first is not ready.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonDependencyCycle goes with status False: ManagedResources wait for each other.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonPruneRefused goes with status False: the prune guard keeps objects that left the manifests.
	ReasonPruneRefused = "PruneRefused"
)

// The reasons of ResourcesHealthy and ResourcesProgressing. Further ones are made of an object's kind: <Kind>Missing,
// <Kind>Unhealthy and <Kind>Progressing.
const (
	// ReasonChecksPending goes with status Unknown: the current objects have not been checked yet.
	ReasonChecksPending = "ChecksPending"
	// ReasonResourcesHealthy goes with status True of ResourcesHealthy.
	ReasonResourcesHealthy = "ResourcesHealthy"
	// ReasonHealthCheckError goes with status False of ResourcesHealthy: a check could not be run.
	ReasonHealthCheckError = "HealthCheckError"
	// ReasonRolloutStuck goes with status False of ResourcesHealthy: a rollout takes longer than is allowed.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonResourcesRolledOut goes with status False of ResourcesProgressing.
	ReasonResourcesRolledOut = "ResourcesRolledOut"
)
