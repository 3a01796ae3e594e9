package v1alpha1

// Finalizer is placed on a ManagedResource before anything of it is applied. A resource-manager of a class other than
// the default one appends "-<class>".
const Finalizer = "resources.gardener.cloud/gardener-resource-manager"

// Values of the resource-manager's resource class.
const (
	// DefaultClass is the configured class that stands for ManagedResources without one.
	DefaultClass = "resources"
	// AllClasses is the configured class that stands for all ManagedResources.
	AllClasses = "*"
)

// Keys on ManagedResources and on the objects they manage.
const (
	// AnnotationIgnore on a ManagedResource (truthy) suspends it; on a managed object it means: create once, then never
	// update.
	AnnotationIgnore = "resources.gardener.cloud/ignore"
	// AnnotationMode on a managed object with the value ModeIgnore releases it from its ManagedResource.
	AnnotationMode = "resources.gardener.cloud/mode"
	// ModeIgnore is the value of AnnotationMode that releases an object.
	ModeIgnore = "Ignore"
	// AnnotationKeepObject (truthy) on a live object keeps it from ever being deleted.
	AnnotationKeepObject = "resources.gardener.cloud/keep-object"
	// AnnotationDeleteOnInvalidUpdate (truthy) on a managed object makes the resource-manager delete and re-create it when an update is
	// rejected as invalid.
	AnnotationDeleteOnInvalidUpdate = "resources.gardener.cloud/delete-on-invalid-update"
	// AnnotationDeletionPropagationOnInvalidUpdate is the propagation policy of that deletion: Background, Foreground or
	// Orphan.
	AnnotationDeletionPropagationOnInvalidUpdate = "resources.gardener.cloud/deletion-propagation-on-invalid-update"
	// AnnotationFinalizeDeletionAfter is a Go duration after which the finalizers of a live object that is being deleted
	// are removed.
	AnnotationFinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
	// AnnotationPreserveReplicas (truthy) on a managed workload keeps its live replicas.
	AnnotationPreserveReplicas = "resources.gardener.cloud/preserve-replicas"
	// AnnotationPreserveResources (truthy) on a managed workload keeps the live resources of its containers.
	AnnotationPreserveResources = "resources.gardener.cloud/preserve-resources"
	// AnnotationSkipHealthCheck (truthy) on a live object excludes it from health checks.
	AnnotationSkipHealthCheck = "resources.gardener.cloud/skip-health-check"
	// AnnotationOrigin on a live object names the ManagedResource that owns it: [<cluster id>:]<namespace>/<name>.
	AnnotationOrigin = "resources.gardener.cloud/origin"
	// AnnotationDescription on a live object warns people who look at it.
	AnnotationDescription = "resources.gardener.cloud/description"
	// Description is the value of AnnotationDescription.
	Description = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n" +
		"Any modifications are discarded and the resource is returned to the original state."
	// LabelManagedBy on a live object selects the objects of a resource-manager.
	LabelManagedBy = "resources.gardener.cloud/managed-by"
	// LabelGarbageCollectableReference (truthy) marks an immutable ConfigMap or Secret that the garbage collector
	// deletes when nothing refers to it.
	LabelGarbageCollectableReference = "resources.gardener.cloud/garbage-collectable-reference"
	// AnnotationConfirmPrune on a ManagedResource confirms a refused prune. Its value is the one that the condition asks
	// for, so that it holds for one set of manifests.
	AnnotationConfirmPrune = "resources.gardener.cloud/confirm-prune"
	// AnnotationOperation on a ManagedResource asks for an operation: reconcile, restore, migrate or
	// wait-for-state, which suspends everything, deletion too.
	AnnotationOperation = "gardener.cloud/operation"
)

// Keys on Secrets for a token requestor.
const (
	// LabelPurpose says what a Secret is for.
	LabelPurpose = "resources.gardener.cloud/purpose"
	// PurposeTokenRequestor is the value of LabelPurpose on Secrets that a token requestor fills in.
	PurposeTokenRequestor = "token-requestor"
	// AnnotationTokenTargetName is the name of the Secret of the target cluster that gets the token.
	AnnotationTokenTargetName = "token-requestor.resources.gardener.cloud/target-secret-name"
	// AnnotationTokenTargetNamespace is its namespace.
	AnnotationTokenTargetNamespace = "token-requestor.resources.gardener.cloud/target-secret-namespace"
	// AnnotationTokenRenewTimestamp is when the token is renewed, in RFC 3339.
	AnnotationTokenRenewTimestamp = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	// LabelClass says which token requestor is responsible.
	LabelClass = "resources.gardener.cloud/class"
	// ClassShoot is the value of LabelClass for the token requestor of the resource-manager.
	ClassShoot = "shoot"
	// ClassGarden is the value of LabelClass for a token requestor that another component runs.
	ClassGarden = "garden"
	// AnnotationServiceAccountName is the name of the ServiceAccount of the target cluster.
	AnnotationServiceAccountName = "serviceaccount.resources.gardener.cloud/name"
	// AnnotationServiceAccountNamespace is its namespace.
	AnnotationServiceAccountNamespace = "serviceaccount.resources.gardener.cloud/namespace"
	// AnnotationServiceAccountLabels are the labels of the ServiceAccount, as a JSON object of strings.
	AnnotationServiceAccountLabels = "serviceaccount.resources.gardener.cloud/labels"
	// AnnotationTokenExpirationDuration is for how long a token is asked, as a Go duration.
	AnnotationTokenExpirationDuration = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
	// AnnotationInjectCABundle (truthy) asks for the CA bundle of the target cluster beside the token.
	AnnotationInjectCABundle = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
	// LabelTokenRequestor on objects that a token requestor created marks those that it may delete. Its value distinguishes token
	// requestors apart. Trellis adds it.
	LabelTokenRequestor = "token-requestor.resources.gardener.cloud/requestor"
	// AnnotationTokenSource beside LabelTokenRequestor names the Secret of the source cluster: <namespace>/<name>.
	AnnotationTokenSource = "token-requestor.resources.gardener.cloud/source"
)

// Keys of the data of Secrets that a token requestor fills in.
const (
	DataKeyToken      = "token"
	DataKeyKubeconfig = "kubeconfig"
	DataKeyBundle     = "bundle.crt"
)

// Keys of the token invalidator, in the target cluster.
const (
	// PurposeTokenInvalidator is the value of LabelPurpose on Secrets that the webhook of the token invalidator receives.
	PurposeTokenInvalidator = "token-invalidator"
	// LabelTokenInvalidatorSkip (with any value) on a ServiceAccount keeps its static tokens valid.
	LabelTokenInvalidatorSkip = "token-invalidator.resources.gardener.cloud/skip"
	// LabelTokenInvalidatorConsider (with any value) on a Secret has the webhook invalidate its token.
	LabelTokenInvalidatorConsider = "token-invalidator.resources.gardener.cloud/consider"
)

// Values of AnnotationOperation.
const (
	// OperationReconcile triggers a reconcile; the annotation is removed before it runs.
	OperationReconcile = "reconcile"
	// OperationRestore triggers a reconcile.
	OperationRestore = "restore"
	// OperationMigrate triggers a reconcile.
	OperationMigrate = "migrate"
	// OperationWaitForState suspends everything, deletion too.
	OperationWaitForState = "wait-for-state"
)

// FieldManager is the name under which the resource-manager owns fields of the objects it applies.
const FieldManager = "resource-manager"

// HealthFieldManager is the name under which the health controller owns its conditions.
const HealthFieldManager = FieldManager + "-health"

// TokenFieldManager is the name under which the token requestor owns fields of Secrets and ServiceAccounts.
const TokenFieldManager = FieldManager + "-token-requestor"
