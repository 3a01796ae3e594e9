package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialsRotationPhase is a step of a rotation of credentials. It is empty before the first rotation.
type CredentialsRotationPhase string

// The values of CredentialsRotationPhase.
const (
	// RotationPreparing means that new credentials are created and distributed in addition to the old ones.
	RotationPreparing CredentialsRotationPhase = "Preparing"
	// RotationPreparingWithoutWorkersRollout is Preparing with worker pools left as they are.
	RotationPreparingWithoutWorkersRollout CredentialsRotationPhase = "PreparingWithoutWorkersRollout"
	// RotationWaitingForWorkersRollout means that worker pools still have to be rolled out on request.
	RotationWaitingForWorkersRollout CredentialsRotationPhase = "WaitingForWorkersRollout"
	// RotationPrepared means that the user may replace the old credentials and then complete the rotation.
	RotationPrepared CredentialsRotationPhase = "Prepared"
	// RotationCompleting means that the old credentials are withdrawn.
	RotationCompleting CredentialsRotationPhase = "Completing"
	// RotationCompleted means that only the new credentials are valid.
	RotationCompleted CredentialsRotationPhase = "Completed"
)

// CARotation is the state of the rotation of certificate authorities.
type CARotation struct {
	// Phase is the step that the rotation has reached.
	Phase CredentialsRotationPhase `json:"phase"`
	// LastCompletionTime is the time at which a rotation was completed last.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// LastInitiationTime is the time at which a rotation was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// LastInitiationFinishedTime is the time at which the preparation ended last.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// LastCompletionTriggeredTime is the time of the last request for a completion.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
	// PendingWorkersRollouts list the worker pools that have not been rolled out with the new credentials.
	// +listType=atomic
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// ServiceAccountKeyRotation is the state of the rotation of the key that signs the tokens of service accounts.
type ServiceAccountKeyRotation struct {
	// Phase is the step that the rotation has reached.
	Phase CredentialsRotationPhase `json:"phase"`
	// LastCompletionTime is the time at which a rotation was completed last.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// LastInitiationTime is the time at which a rotation was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// LastInitiationFinishedTime is the time at which the preparation ended last.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// LastCompletionTriggeredTime is the time of the last request for a completion.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
	// PendingWorkersRollouts list the worker pools that have not been rolled out with the new credentials.
	// +listType=atomic
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// ETCDEncryptionKeyRotation is the state of the rotation of the key that encrypts objects in etcd.
type ETCDEncryptionKeyRotation struct {
	// Phase is the step that the rotation has reached.
	Phase CredentialsRotationPhase `json:"phase"`
	// LastCompletionTime is the time at which a rotation was completed last.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// LastInitiationTime is the time at which a rotation was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// LastInitiationFinishedTime is the time at which the preparation ended last.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// LastCompletionTriggeredTime is the time of the last request for a completion.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
	// AutoCompleteAfterPrepared defines whether the rotation continues automatically after its preparation. Deprecated: every
	// rotation does.
	// +optional
	AutoCompleteAfterPrepared *bool `json:"autoCompleteAfterPrepared,omitempty"`
}

// ShootSSHKeypairRotation is the state of the rotation of the SSH key pair of the nodes.
type ShootSSHKeypairRotation struct {
	// LastInitiationTime is the time at which a rotation was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// LastCompletionTime is the time at which a rotation was completed last.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
}

// ObservabilityRotation is the state of the rotation of the passwords for the observability tools.
type ObservabilityRotation struct {
	// LastInitiationTime is the time at which a rotation was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// LastCompletionTime is the time at which a rotation was completed last.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
}

// PendingWorkersRollout names a worker pool that waits for its roll-out.
type PendingWorkersRollout struct {
	// Name is the name of the worker pool.
	Name string `json:"name"`
	// LastInitiationTime is the time of the last request for the roll-out.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}
