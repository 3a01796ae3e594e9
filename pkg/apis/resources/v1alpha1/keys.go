package v1alpha1

// Finalizer is added to a ManagedResource before any of its objects is applied. A resource-manager of a class other
// than the default class appends "-<class>".
const Finalizer = "resources.gardener.cloud/gardener-resource-manager"

// Values of the resource-manager's resource class.
const (
	// DefaultClass is the configured class that selects ManagedResources without a class.
	DefaultClass = "resources"
	// AllClasses is the configured class that selects all ManagedResources.
	AllClasses = "*"
)

// Keys on ManagedResources and on the objects they manage.
const (
	// AnnotationIgnore on a ManagedResource (truthy) suspends it. On a managed object, it means that the object is created
	// once and never updated.
	AnnotationIgnore = "resources.gardener.cloud/ignore"
	// AnnotationMode on a managed object, with the value ModeIgnore, releases it from its ManagedResource.
	AnnotationMode = "resources.gardener.cloud/mode"
	// ModeIgnore is the value of AnnotationMode that releases an object.
	ModeIgnore = "Ignore"
	// AnnotationKeepObject (truthy) on a live object prevents its deletion.
	AnnotationKeepObject = "resources.gardener.cloud/keep-object"
	// AnnotationDeleteOnInvalidUpdate (truthy) on a managed object makes the resource-manager delete and re-create it if
	// an update is rejected as invalid.
	AnnotationDeleteOnInvalidUpdate = "resources.gardener.cloud/delete-on-invalid-update"
	// AnnotationDeletionPropagationOnInvalidUpdate is the propagation policy of that deletion: Background, Foreground or
	// Orphan.
	AnnotationDeletionPropagationOnInvalidUpdate = "resources.gardener.cloud/deletion-propagation-on-invalid-update"
	// AnnotationFinalizeDeletionAfter on a live object is a Go duration. If the object is still being deleted after this
	// time, its finalizers are removed.
	AnnotationFinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
	// AnnotationPreserveReplicas (truthy) on a managed workload keeps its live replicas.
	AnnotationPreserveReplicas = "resources.gardener.cloud/preserve-replicas"
	// AnnotationPreserveResources (truthy) on a managed workload keeps the live resources of its containers.
	AnnotationPreserveResources = "resources.gardener.cloud/preserve-resources"
	// AnnotationSkipHealthCheck (truthy) on a live object excludes it from health checks.
	AnnotationSkipHealthCheck = "resources.gardener.cloud/skip-health-check"
	// AnnotationOrigin on a live object names the ManagedResource that owns it: [<cluster id>:]<namespace>/<name>.
	AnnotationOrigin = "resources.gardener.cloud/origin"
	// AnnotationDescription on a live object warns people who view it.
	AnnotationDescription = "resources.gardener.cloud/description"
	// Description is the value of AnnotationDescription.
	Description = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n" +
		"Any modifications are discarded and the resource is returned to the original state."
	// LabelManagedBy on a live object selects the objects of a resource-manager.
	LabelManagedBy = "resources.gardener.cloud/managed-by"
	// LabelGarbageCollectableReference (truthy) marks an immutable ConfigMap or Secret that the garbage collector deletes
	// when no object refers to it.
	LabelGarbageCollectableReference = "resources.gardener.cloud/garbage-collectable-reference"
	// AnnotationConfirmPrune on a ManagedResource confirms a refused prune. Its value is the one that the condition names.
	// It is valid for one set of manifests.
	AnnotationConfirmPrune = "resources.gardener.cloud/confirm-prune"
	// AnnotationOperation on a ManagedResource requests an operation: reconcile, restore, migrate or wait-for-state. The
	// last one suspends the ManagedResource, including its deletion.
	AnnotationOperation = "gardener.cloud/operation"
)

// AnnotationNamespaceAccount on a Namespace names a ServiceAccount in it. A resource-manager with the setting
// controllers.managedResource.namespaceServiceAccounts applies all ManagedResources of the namespace as this account.
const AnnotationNamespaceAccount = "resources.gardener.cloud/service-account-name"

// Keys on Secrets for a token requestor.
const (
	// LabelPurpose is the purpose of a Secret.
	LabelPurpose = "resources.gardener.cloud/purpose"
	// PurposeTokenRequestor is the value of LabelPurpose on Secrets that a token requestor fills in.
	PurposeTokenRequestor = "token-requestor"
	// AnnotationTokenTargetName is the name of the Secret in the target cluster to which the token is written.
	AnnotationTokenTargetName = "token-requestor.resources.gardener.cloud/target-secret-name"
	// AnnotationTokenTargetNamespace is its namespace.
	AnnotationTokenTargetNamespace = "token-requestor.resources.gardener.cloud/target-secret-namespace"
	// AnnotationTokenRenewTimestamp is when the token is renewed, in RFC 3339.
	AnnotationTokenRenewTimestamp = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	// LabelClass selects the token requestor that is responsible.
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
	// AnnotationTokenExpirationDuration is the requested lifetime of the token, as a Go duration.
	AnnotationTokenExpirationDuration = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
	// AnnotationInjectCABundle (truthy) requests the CA bundle of the target cluster in addition to the token.
	AnnotationInjectCABundle = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
	// LabelTokenRequestor marks the objects that a token requestor created, and may delete. Its value distinguishes token
	// requestors. It is specific to Trellis.
	LabelTokenRequestor = "token-requestor.resources.gardener.cloud/requestor"
	// AnnotationTokenSource names the Secret of the source cluster: <namespace>/<name>. It is set together with
	// LabelTokenRequestor.
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
	// LabelTokenInvalidatorConsider (with any value) on a Secret makes the webhook invalidate its token.
	LabelTokenInvalidatorConsider = "token-invalidator.resources.gardener.cloud/consider"
)

// Values of AnnotationOperation.
const (
	// OperationReconcile triggers a reconcile. The annotation is removed before the reconcile starts.
	OperationReconcile = "reconcile"
	// OperationRestore triggers a reconcile.
	OperationRestore = "restore"
	// OperationMigrate triggers a reconcile.
	OperationMigrate = "migrate"
	// OperationWaitForState suspends the ManagedResource, including its deletion.
	OperationWaitForState = "wait-for-state"
)

// FieldManager is the field manager of the objects that the resource-manager applies.
const FieldManager = "resource-manager"

// HealthFieldManager is the field manager of the health controller, for its conditions.
const HealthFieldManager = FieldManager + "-health"

// TokenFieldManager is the field manager of the token requestor, for Secrets and ServiceAccounts.
const TokenFieldManager = FieldManager + "-token-requestor"
