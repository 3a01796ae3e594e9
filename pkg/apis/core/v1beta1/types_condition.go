package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition describes one aspect of an object's state, as the controller that owns the condition saw it last.
type Condition struct {
	// Type is the name of the aspect.
	Type ConditionType `json:"type"`
	// Status reports whether the condition holds.
	Status ConditionStatus `json:"status"`
	// LastTransitionTime is the time at which the status changed last.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// LastUpdateTime is the time at which status, reason, message or codes changed last.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Reason is one word, in CamelCase, for why the condition has its status.
	Reason string `json:"reason"`
	// Message explains the status to a person.
	Message string `json:"message"`
	// Codes classify the errors behind a condition that does not hold.
	// +listType=atomic
	// +optional
	Codes []ErrorCode `json:"codes,omitempty"`
}

// ConditionStatus is the status of a condition.
type ConditionStatus string

// The values of ConditionStatus.
const (
	// ConditionTrue means that the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means that the condition does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means that the controller cannot decide.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing means that the condition held, does not hold now, and may recover within its threshold.
	ConditionProgressing ConditionStatus = "Progressing"
)

// ConditionType is the name of a condition.
type ConditionType string

// ErrorCode classifies an error. Whether an operation is retried and whether a Shoot may be deleted by force depend on it.
type ErrorCode string

// The values of ErrorCode.
const (
	// ErrorInfraUnauthenticated means that the infrastructure rejects the credentials. It is not retried.
	ErrorInfraUnauthenticated ErrorCode = "ERR_INFRA_UNAUTHENTICATED"
	// ErrorInfraUnauthorized means that the credentials lack a permission. It is not retried.
	ErrorInfraUnauthorized ErrorCode = "ERR_INFRA_UNAUTHORIZED"
	// ErrorInfraQuotaExceeded means that a quota of the infrastructure account is used up. It is not retried.
	ErrorInfraQuotaExceeded ErrorCode = "ERR_INFRA_QUOTA_EXCEEDED"
	// ErrorInfraRateLimitsExceeded means that the infrastructure throttles requests. It is not retried.
	ErrorInfraRateLimitsExceeded ErrorCode = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
	// ErrorInfraDependencies means that something else in the infrastructure account is in the way. It is not retried.
	ErrorInfraDependencies ErrorCode = "ERR_INFRA_DEPENDENCIES"
	// ErrorRetryableInfraDependencies means that something in the infrastructure account is in the way for now.
	ErrorRetryableInfraDependencies ErrorCode = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
	// ErrorInfraResourcesDepleted means that the infrastructure has no capacity for the request now.
	ErrorInfraResourcesDepleted ErrorCode = "ERR_INFRA_RESOURCES_DEPLETED"
	// ErrorCleanupClusterResources means that objects in the cluster block its deletion.
	ErrorCleanupClusterResources ErrorCode = "ERR_CLEANUP_CLUSTER_RESOURCES"
	// ErrorConfigurationProblem means that the user has to correct the configuration. It is not retried.
	ErrorConfigurationProblem ErrorCode = "ERR_CONFIGURATION_PROBLEM"
	// ErrorRetryableConfigurationProblem means that the configuration is wrong for now.
	ErrorRetryableConfigurationProblem ErrorCode = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
	// ErrorProblematicWebhook means that a webhook in the cluster disturbs the control plane. It is not retried.
	ErrorProblematicWebhook ErrorCode = "ERR_PROBLEMATIC_WEBHOOK"
)
