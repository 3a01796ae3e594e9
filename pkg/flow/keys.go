package flow

// Keys on the ManagedResources and Secrets that flows emit.
const (
	// LabelFlow names the flow. Nothing without it is changed or deleted.
	LabelFlow = "flow.resources.gardener.cloud/name"
	// LabelOwner is the UID of the object that the flow emits for.
	LabelOwner = "flow.resources.gardener.cloud/owner-uid"
	// AnnotationOwner is "<namespace>/<name>" of that object, for the watches that lead back to it.
	AnnotationOwner = "flow.resources.gardener.cloud/owner"
	// AnnotationDigest is "<content>.<secrets>": a digest of the bundle, and one of the names of the Secrets that hold it.
	AnnotationDigest = "flow.resources.gardener.cloud/digest"
	// AnnotationInputs is "<number>.<inputs>": a digest of what the flow read when it emitted this. The emission with the greatest number
	// is the last one.
	AnnotationInputs = "flow.resources.gardener.cloud/inputs"
	// AnnotationBundles has four characters for each bundle in the plan that this was emitted for. It distinguishes a bundle that was deleted by
	// hand from one that a new version of the program adds. The names themselves would be several hundred bytes on each ManagedResource.
	AnnotationBundles = "flow.resources.gardener.cloud/bundles"
	// AnnotationVersion is the version of the program that emitted this.
	AnnotationVersion = "flow.resources.gardener.cloud/version"
	// AnnotationDeleteAfter lists the bundles that have to be gone first, as JSON. Without it these are the ones that depend on it.
	AnnotationDeleteAfter = "flow.resources.gardener.cloud/delete-after"
	// AnnotationChoices are the choices that the flow keeps to, as a JSON object of strings.
	AnnotationChoices = "flow.resources.gardener.cloud/choices"
	// AnnotationConfirmed marks a ManagedResource whose objects carry the confirmation of their deletion. Its value is the digest of the
	// names of the Secrets that hold them.
	AnnotationConfirmed = "flow.resources.gardener.cloud/deletion-confirmed"
)

// keyPrefix begins all keys of flows.
const keyPrefix = "flow.resources.gardener.cloud/"

// AnnotationMutators on an object in a bundle is a digest of the webhooks that change the object: see [MarkMutated].
const AnnotationMutators = keyPrefix + "mutators"

// AnnotationConfirmDeletion on an object allows its deletion, where a guard asks for that.
const AnnotationConfirmDeletion = "confirmation.gardener.cloud/deletion"

// AnnotationForceDeletion on an extension object has its controller end the deletion without the infrastructure.
const AnnotationForceDeletion = "confirmation.gardener.cloud/force-deletion"
