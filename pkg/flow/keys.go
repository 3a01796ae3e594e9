package flow

// Keys on the ManagedResources and Secrets that flows emit.
const (
	// LabelFlow names the flow. Objects without it are never changed or deleted.
	LabelFlow = "flow.resources.gardener.cloud/name"
	// LabelOwner is the UID of the owner.
	LabelOwner = "flow.resources.gardener.cloud/owner-uid"
	// AnnotationOwner is "<namespace>/<name>" of the owner. Watches use it to enqueue the owner.
	AnnotationOwner = "flow.resources.gardener.cloud/owner"
	// AnnotationDigest is "<content>.<secrets>": a digest of the bundle, and one of the names of the Secrets that hold it.
	AnnotationDigest = "flow.resources.gardener.cloud/digest"
	// AnnotationInputs is "<number>.<inputs>": the number of the emission and a digest of its inputs. The emission with
	// the highest number is the last one.
	AnnotationInputs = "flow.resources.gardener.cloud/inputs"
	// AnnotationBundles has four characters for each bundle in the plan of the emission. It distinguishes a bundle that
	// was deleted manually from one that a new version of the program adds. The full names would take several hundred
	// bytes on each ManagedResource.
	AnnotationBundles = "flow.resources.gardener.cloud/bundles"
	// AnnotationVersion is the version of the program that emitted the object.
	AnnotationVersion = "flow.resources.gardener.cloud/version"
	// AnnotationProgram is [Plan.Program] of the plan that emitted the object.
	AnnotationProgram = "flow.resources.gardener.cloud/program"
	// AnnotationGeneration is [Plan.Generation] of the plan that emitted the object.
	AnnotationGeneration = "flow.resources.gardener.cloud/generation"
	// AnnotationDeleteAfter lists the bundles that must be deleted first, as JSON. Without it, these are the bundles that
	// depend on it.
	AnnotationDeleteAfter = "flow.resources.gardener.cloud/delete-after"
	// AnnotationDependencies lists the dependencies of a bundle before its deletion was confirmed, as JSON. The confirmation
	// waits for none of them, so they are no longer in the spec, but still are deleted after the bundle.
	AnnotationDependencies = "flow.resources.gardener.cloud/dependencies"
	// AnnotationChoices are the choices that the flow keeps, as a JSON object with string values.
	AnnotationChoices = "flow.resources.gardener.cloud/choices"
	// AnnotationConfirmed marks a ManagedResource whose objects have the deletion confirmation annotation. Its value is
	// the digest of the names of the Secrets that contain them.
	AnnotationConfirmed = "flow.resources.gardener.cloud/deletion-confirmed"
)

// keyPrefix is the prefix of all keys of flows.
const keyPrefix = "flow.resources.gardener.cloud/"

// LabelHealthAwaited with the value "false" on a ManagedResource says that nothing waits for the health of its objects, and that it is not an
// error of an operation: a condition of the owner reports it. Whether such objects are healthy may depend on users, for example on
// whether the cluster has nodes.
const LabelHealthAwaited = keyPrefix + "health-awaited"

// AnnotationMutators on an object in a bundle is a digest of the webhooks that mutate the object: see [MarkMutated].
const AnnotationMutators = keyPrefix + "mutators"

// AnnotationConfirmDeletion on an object allows its deletion if a guard requires a confirmation.
const AnnotationConfirmDeletion = "confirmation.gardener.cloud/deletion"

// AnnotationForceDeletion on an extension object makes its controller complete the deletion without the infrastructure.
const AnnotationForceDeletion = "confirmation.gardener.cloud/force-deletion"
