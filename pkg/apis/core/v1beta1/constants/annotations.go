package constants

// Annotations that apply to several kinds.
const (
	// AnnotationGardenerOperation asks for an operation, or, on a Shoot, for several ones separated by semicolons.
	AnnotationGardenerOperation = "gardener.cloud/operation"
	// AnnotationGardenerTimestamp is the time at which an operation of an extension resource was asked for last, as RFC
	// 3339 with nanoseconds.
	AnnotationGardenerTimestamp = "gardener.cloud/timestamp"
	// AnnotationGardenCreatedBy is the name of the user who created an object.
	AnnotationGardenCreatedBy = "gardener.cloud/created-by"
	// AnnotationGardenerDescription says what an object is for.
	AnnotationGardenerDescription = "gardener.cloud/description"
	// AnnotationGardenerWarning warns people who look at an object.
	AnnotationGardenerWarning = "gardener.cloud/warning"
	// AnnotationConfirmationDeletion confirms that an object may be deleted.
	AnnotationConfirmationDeletion = "confirmation.gardener.cloud/deletion"
	// AnnotationConfirmationForceDeletion confirms that an object may be deleted although what it stands for is not
	// cleaned up.
	AnnotationConfirmationForceDeletion = "confirmation.gardener.cloud/force-deletion"
	// AnnotationDeletionConfirmedBy is the name of the user who confirmed the deletion of a Shoot.
	AnnotationDeletionConfirmedBy = "deletion.gardener.cloud/confirmed-by"
)
