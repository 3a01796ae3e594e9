package v1alpha1

// ConditionType is the name of a condition.
type ConditionType string

// The condition types of a ManagedResource. The controller of ManagedResources decides about ResourcesApplied. ResourcesHealthy and
// ResourcesProgressing are the health controller's, but for the first word on a change, and while nothing is checked, which are the
// former's. Each of the two writes Ready with what it decides, and all writes take over the ownership of what they write (server-side
// apply with force): that of ResourcesApplied repeats what the others say. The resourceVersion in every write keeps one controller from
// overwriting what the other one has said since it looked.
const (
	// ResourcesApplied is True when all objects are applied to the target cluster.
	ResourcesApplied ConditionType = "ResourcesApplied"
	// ResourcesHealthy is True when all objects are present and healthy.
	ResourcesHealthy ConditionType = "ResourcesHealthy"
	// ResourcesProgressing is True while an object is being rolled out.
	ResourcesProgressing ConditionType = "ResourcesProgressing"
	// Ready sums the others up, for tools that know conditions in general, such as Flux (kstatus): it is True when the
	// objects are applied, healthy and rolled out. Each controller that writes one of the others also writes it.
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

// The reasons of ResourcesApplied. The generated reference has each with its status, its meaning and what to do.
const (
	// ReasonApplySucceeded goes with status True: all objects are applied, and nothing is left to be deleted.
	ReasonApplySucceeded = "ApplySucceeded"
	// ReasonManagedResourceIgnored goes with status True: the annotation resources.gardener.cloud/ignore suspends the
	// ManagedResource, and its objects are neither applied nor checked. To do: remove the annotation to go on.
	ReasonManagedResourceIgnored = "ManagedResourceIgnored"
	// ReasonApplyProgressing goes with status Progressing: objects are being applied, or wait for a predecessor of the same
	// name to be gone. To do: wait; the message names them.
	ReasonApplyProgressing = "ApplyProgressing"
	// ReasonDeletionPending goes with status Progressing: objects are being deleted. To do: if it lasts, look at the
	// finalizers of the objects in the message, and at the warnings about Services there.
	ReasonDeletionPending = "DeletionPending"
	// ReasonDeletionWaits goes with status Progressing: the ManagedResource is to be deleted, but others must be gone first: those that
	// depend on it, or those in deleteAfter. Nothing is deleted. To do: delete these, or remove the dependency.
	ReasonDeletionWaits = "DeletionWaits"
	// ReasonDependencyNotReady goes with status Progressing: changes wait because a ManagedResource in dependsOn is not applied
	// or not healthy; what is applied is kept. To do: look at that one; this one goes on by itself.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonApplyFailed goes with status False: the API server rejected objects, their kind is not served, or another
	// ManagedResource owns them. To do: as the message says for each object.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonDecodingFailed goes with status False: a manifest cannot be read, lacks kind or name, or is given twice with
	// different content; what can be read is applied, and nothing is pruned. To do: fix the key and index in the message.
	ReasonDecodingFailed = "DecodingFailed"
	// ReasonCannotReadSecret goes with status False: a referenced Secret does not exist or cannot be read, or all
	// referenced Secrets are empty although there are objects; what can be read is applied, and nothing is pruned. To do: create
	// it, fill it, or remove the reference.
	ReasonCannotReadSecret = "CannotReadSecret"
	// ReasonDeletionFailed goes with status False: the API server refused to delete objects. To do: fix permissions or
	// webhooks, as the message says.
	ReasonDeletionFailed = "DeletionFailed"
	// ReasonReleaseOfOrphanedResourcesFailed goes with status False: an object in mode Ignore could not be released. To do:
	// as the message says.
	ReasonReleaseOfOrphanedResourcesFailed = "ReleaseOfOrphanedResourcesFailed"
	// ReasonDependencyCycle goes with status False: changes wait because ManagedResources depend on each other; what is applied
	// is kept. To do: remove one of the dependencies in the message.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonPruneRefused goes with status False: the prune guard keeps objects that left the manifests. To do: restore the
	// manifests, or set the annotation that the message names.
	ReasonPruneRefused = "PruneRefused"
)

// The reasons of ResourcesHealthy and ResourcesProgressing, beside DeletionPending (False and True) and
// ManagedResourceIgnored (True and False). Some begin with the kind of the first object that the message names.
const (
	// ReasonResourcesHealthy goes with status True of ResourcesHealthy: all objects are there, and well.
	ReasonResourcesHealthy = "ResourcesHealthy"
	// ReasonKindMissing goes with status False of ResourcesHealthy: objects do not exist, or their kind is not served. To
	// do: if ResourcesApplied is False, fix that; otherwise find out who deletes them (kubectl mr events).
	ReasonKindMissing = "Missing" // after the kind
	// ReasonKindUnhealthy goes with status False of ResourcesHealthy: objects are not well, as the message says for each.
	// To do: kubectl mr why goes on to the Pods and Events.
	ReasonKindUnhealthy = "Unhealthy" // after the kind
	// ReasonHealthCheckError goes with status False of ResourcesHealthy: a check cannot be run on an object, or the checks
	// of the ManagedResource cannot be used. To do: fix the expression that the message names.
	ReasonHealthCheckError = "HealthCheckError"
	// ReasonRolloutStuck goes with status False of ResourcesHealthy: a rollout takes longer than
	// controllers.health.progressingThreshold. To do: as for ResourcesProgressing, whose message names the objects.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonKindProgressing goes with status True of ResourcesProgressing: objects are being rolled out, as the message says
	// for each. To do: wait; if it lasts, kubectl mr why and kubectl mr tree show the Pods that do not come up or do not go.
	ReasonKindProgressing = "Progressing" // after the kind
	// ReasonResourcesRolledOut goes with status False of ResourcesProgressing: nothing is being rolled out.
	ReasonResourcesRolledOut = "ResourcesRolledOut"
	// ReasonChecksPending goes with status Unknown of both: objects were changed and have not been looked at yet, or cannot
	// be read. To do: wait; if it lasts, give the resource-manager the right to get, list and watch the kinds in the message.
	ReasonChecksPending = "ChecksPending"
)
