package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastOperation describes the current or last operation of a controller.
type LastOperation struct {
	// Description describes what the operation does now, or how it ended.
	Description string `json:"description"`
	// LastUpdateTime is the time at which the operation was updated last.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Progress is the share of the operation that is done, in percent.
	Progress int32 `json:"progress"`
	// State is the state of the operation.
	State LastOperationState `json:"state"`
	// Type is the kind of the operation.
	Type LastOperationType `json:"type"`
}

// LastOperationType is a kind of operation.
type LastOperationType string

// The values of LastOperationType.
const (
	// LastOperationTypeCreate creates what does not exist yet.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile brings what exists in line with its specification.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete deletes what exists.
	LastOperationTypeDelete LastOperationType = "Delete"
	// LastOperationTypeMigrate prepares a control plane for its move to another seed.
	LastOperationTypeMigrate LastOperationType = "Migrate"
	// LastOperationTypeRestore brings a control plane up again on its new seed.
	LastOperationTypeRestore LastOperationType = "Restore"
	// LastOperationTypeLiveMigrate moves a control plane to another seed while it serves.
	LastOperationTypeLiveMigrate LastOperationType = "LiveMigrate"
)

// LastOperationState is the state of an operation.
type LastOperationState string

// The values of LastOperationState.
const (
	// LastOperationStatePending means that the operation has not begun.
	LastOperationStatePending LastOperationState = "Pending"
	// LastOperationStateProcessing means that the operation runs.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded means that the operation is done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError means that the operation failed and is retried.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateFailed means that the operation failed and is not retried before the specification changes or a
	// retry is requested.
	LastOperationStateFailed LastOperationState = "Failed"
	// LastOperationStateAborted means that the operation was stopped.
	LastOperationStateAborted LastOperationState = "Aborted"
)

// LastError describes an error of an operation.
type LastError struct {
	// Description is what went wrong.
	Description string `json:"description"`
	// TaskID is the name of the step that failed.
	// +optional
	TaskID *string `json:"taskID,omitempty"`
	// Codes classify the error.
	// +listType=atomic
	// +optional
	Codes []ErrorCode `json:"codes,omitempty"`
	// LastUpdateTime is the time at which the error was reported last.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
}
