package v1alpha1

// ConditionType is the name of a condition.
type ConditionType string

// The condition types of a ManagedResource. The ManagedResource controller writes ResourcesApplied. The health
// controller writes ResourcesHealthy and ResourcesProgressing. The ManagedResource controller also initializes these
// two after a change, and sets them while nothing is checked. Each of the controllers also writes Ready. All writes
// take over the ownership of the conditions that they contain (server-side apply with force). A write of the
// ManagedResource controller repeats the conditions of the health controller. Each write contains the resourceVersion,
// so that a controller cannot overwrite newer conditions of the other one.
const (
	// ResourcesApplied is True when all objects are applied to the target cluster.
	ResourcesApplied ConditionType = "ResourcesApplied"
	// ResourcesHealthy is True when all objects are present and healthy.
	ResourcesHealthy ConditionType = "ResourcesHealthy"
	// ResourcesProgressing is True while an object is being rolled out.
	ResourcesProgressing ConditionType = "ResourcesProgressing"
	// Ready summarizes the other conditions for generic tools such as Flux (kstatus): it is True if the objects are
	// applied, healthy and rolled out. Each controller that writes one of the other conditions also writes Ready.
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
	// ConditionProgressing means that the operation that leads to the condition is in progress.
	ConditionProgressing ConditionStatus = "Progressing"
)

// The reasons of ResourcesApplied. The generated reference lists the status, meaning and remedy of each.
const (
	// ReasonApplySucceeded goes with status True: all objects are applied, and no deletion is pending.
	ReasonApplySucceeded = "ApplySucceeded"
	// ReasonManagedResourceIgnored goes with status True: the annotation resources.gardener.cloud/ignore suspends the
	// ManagedResource, and its objects are neither applied nor checked. To do: remove the annotation to resume.
	ReasonManagedResourceIgnored = "ManagedResourceIgnored"
	// ReasonApplyProgressing goes with status Progressing: objects are being applied, or wait for the deletion of a
	// previous object of the same name. To do: wait; the message names them.
	ReasonApplyProgressing = "ApplyProgressing"
	// ReasonDeletionPending goes with status Progressing: objects are being deleted. To do: if it lasts, check the
	// finalizers of the objects in the message, and at the warnings about Services there.
	ReasonDeletionPending = "DeletionPending"
	// ReasonDeletionWaits goes with status Progressing: the deletion of the ManagedResource was requested, but other
	// ManagedResources must be deleted first: its dependents, or those in deleteAfter. No object is deleted until then. To
	// do: delete these, or remove the dependency.
	ReasonDeletionWaits = "DeletionWaits"
	// ReasonDependencyNotReady goes with status Progressing: changes wait because a ManagedResource in dependsOn is not
	// applied or not healthy; applied objects are kept. To do: check that ManagedResource; this one continues
	// automatically.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonApplyFailed goes with status False: the API server rejected objects, their kind is not served, or another
	// ManagedResource owns them. To do: follow the message, which has the error of each object.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonDecodingFailed goes with status False: a manifest cannot be read, lacks kind or name, or occurs twice with
	// different content; readable manifests are applied, and nothing is pruned. To do: fix the key and index in the
	// message.
	ReasonDecodingFailed = "DecodingFailed"
	// ReasonCannotReadSecret goes with status False: a referenced Secret does not exist or cannot be read, or all
	// referenced Secrets are empty although the inventory has objects; readable manifests are applied, and nothing is
	// pruned. To do: create the Secret, fill it, or remove the reference.
	ReasonCannotReadSecret = "CannotReadSecret"
	// ReasonDeletionFailed goes with status False: the API server refused to delete objects. To do: fix the permissions or
	// webhooks in the message.
	ReasonDeletionFailed = "DeletionFailed"
	// ReasonReleaseOfOrphanedResourcesFailed goes with status False: an object in mode Ignore could not be released. To
	// do: fix the error in the message.
	ReasonReleaseOfOrphanedResourcesFailed = "ReleaseOfOrphanedResourcesFailed"
	// ReasonDependencyCycle goes with status False: changes wait because ManagedResources depend on each other; applied
	// objects are kept. To do: remove one of the dependencies in the message.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonPruneRefused goes with status False: the prune guard keeps objects that were removed from the manifests. To
	// do: restore the manifests, or set the annotation that the message names.
	ReasonPruneRefused = "PruneRefused"
)

// The reasons of ResourcesHealthy and ResourcesProgressing, in addition to DeletionPending (False and True) and
// ManagedResourceIgnored (True and False). Some begin with the kind of the first object that the message names.
const (
	// ReasonResourcesHealthy goes with status True of ResourcesHealthy: all objects exist and are healthy.
	ReasonResourcesHealthy = "ResourcesHealthy"
	// ReasonKindMissing goes with status False of ResourcesHealthy: objects do not exist, or their kind is not served. To
	// do: if ResourcesApplied is False, fix that; otherwise find out which client deletes them (kubectl mr events).
	ReasonKindMissing = "Missing" // after the kind
	// ReasonKindUnhealthy goes with status False of ResourcesHealthy: objects are not healthy; the message has the cause
	// for each. To do: use kubectl mr why, which also shows Pods and Events.
	ReasonKindUnhealthy = "Unhealthy" // after the kind
	// ReasonHealthCheckError goes with status False of ResourcesHealthy: the check of an object fails with an error, or
	// the checks of the ManagedResource are invalid. To do: fix the expression that the message names.
	ReasonHealthCheckError = "HealthCheckError"
	// ReasonRolloutStuck goes with status False of ResourcesHealthy: a rollout takes longer than
	// controllers.health.progressingThreshold. To do: as for ResourcesProgressing, whose message names the objects.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonKindProgressing goes with status True of ResourcesProgressing: objects are being rolled out; the message has
	// the progress of each. To do: wait; if it lasts, kubectl mr why and kubectl mr tree show the Pods that do not start
	// or terminate.
	ReasonKindProgressing = "Progressing" // after the kind
	// ReasonResourcesRolledOut goes with status False of ResourcesProgressing: no rollout is in progress.
	ReasonResourcesRolledOut = "ResourcesRolledOut"
	// ReasonChecksPending goes with status Unknown of both: objects were changed and have not been checked yet, or cannot
	// be read. To do: wait; if it lasts, grant the resource-manager the permissions to get, list and watch the kinds in
	// the message.
	ReasonChecksPending = "ChecksPending"
)
