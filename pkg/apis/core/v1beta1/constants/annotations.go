package constants

// Annotations that apply to several kinds.
const (
	// AnnotationGardenerOperation requests an operation or, on a Shoot, several operations separated by semicolons.
	AnnotationGardenerOperation = "gardener.cloud/operation"
	// AnnotationGardenerTimestamp is the time at which an operation of an extension resource was last requested, as RFC 3339
	// with nanoseconds.
	AnnotationGardenerTimestamp = "gardener.cloud/timestamp"
	// AnnotationGardenCreatedBy is the name of the user who created an object.
	AnnotationGardenCreatedBy = "gardener.cloud/created-by"
	// AnnotationGardenerDescription describes the purpose of an object.
	AnnotationGardenerDescription = "gardener.cloud/description"
	// AnnotationGardenerWarning is a warning for users who inspect an object.
	AnnotationGardenerWarning = "gardener.cloud/warning"
	// AnnotationConfirmationDeletion confirms that an object may be deleted.
	AnnotationConfirmationDeletion = "confirmation.gardener.cloud/deletion"
	// AnnotationConfirmationForceDeletion confirms that an object may be deleted although the resources that it represents
	// are not cleaned up.
	AnnotationConfirmationForceDeletion = "confirmation.gardener.cloud/force-deletion"
	// AnnotationDeletionConfirmedBy is the name of the user who confirmed the deletion of a Shoot.
	AnnotationDeletionConfirmedBy = "deletion.gardener.cloud/confirmed-by"
)
