// Package health writes the conditions of extension objects, which gardenlet merges into those of the Shoot.
package health

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

// Conditions that gardenlet merges into those of the Shoot.
const (
	SystemComponentsHealthy        corev1beta1.ConditionType = "SystemComponentsHealthy"
	EveryNodeReady                 corev1beta1.ConditionType = "EveryNodeReady"
	ControlPlaneHealthy            corev1beta1.ConditionType = "ControlPlaneHealthy"
	ObservabilityComponentsHealthy corev1beta1.ConditionType = "ObservabilityComponentsHealthy"
)

// Reasons of conditions, which are Gardener's.
const (
	// ReasonSuccessful is the reason for True: all checks are healthy, or the Shoot is hibernated.
	ReasonSuccessful = "HealthCheckSuccessful"
	// ReasonUnsuccessful is the reason for False.
	ReasonUnsuccessful = "HealthCheckUnsuccessful"
	// ReasonProgressing is the reason for Progressing.
	ReasonProgressing = "HealthCheckProgressing"
	// ReasonError is the reason for Unknown: a check could not run.
	ReasonError = "ConditionCheckError"
)

// Finding is the result of a check.
type Finding struct {
	// Status is True, False, or Progressing, which means unhealthy but possibly healthy again within the threshold of the check.
	Status corev1beta1.ConditionStatus
	// Message describes the problem as a sentence.
	Message string
	// Codes of the problem.
	Codes []corev1beta1.ErrorCode
}

// Healthy returns a finding without a problem.
func Healthy() Finding { return Finding{Status: corev1beta1.ConditionTrue} }

// Unhealthy returns a finding with a problem.
func Unhealthy(message string, codes ...corev1beta1.ErrorCode) Finding {
	return Finding{Status: corev1beta1.ConditionFalse, Message: message, Codes: codes}
}

// Progressing returns a finding with a problem that may resolve itself.
func Progressing(message string) Finding {
	return Finding{Status: corev1beta1.ConditionProgressing, Message: message}
}

// LookFunc checks one aspect of an object. It reads from caches.
type LookFunc[T extensionsv1alpha1.Object] func(ctx context.Context, object T, cluster *extension.Cluster) (Finding, error)

// Check is a health check. An error makes the condition Unknown.
type Check[T extensionsv1alpha1.Object] struct {
	// Condition to which the check contributes. The worst finding of its checks determines it.
	Condition corev1beta1.ConditionType
	// Look runs the check.
	Look LookFunc[T]
	// ProgressingThreshold is the time after which Progressing becomes False. It defaults to 5 minutes.
	ProgressingThreshold time.Duration
	// WhileHibernated also runs the check for a hibernated Shoot. Otherwise it is healthy then.
	WhileHibernated bool
}

// Options are the options of a controller.
type Options[T extensionsv1alpha1.Object] struct {
	// Type and Classes as in [extension.Options].
	Type    string
	Classes []extensionsv1alpha1.ExtensionClass
	Checks  []Check[T]
	// Obsolete are conditions of an older version of the extension, which are removed.
	Obsolete []corev1beta1.ConditionType
	// Sources trigger checks of objects. Changes of an object's generation or last operation also trigger them.
	Sources []source.Source
	// Every is the additional interval of checks of each object. 0 disables it.
	Every time.Duration
	// Clock defaults to the real clock if it is nil.
	Clock clock.PassiveClock
}
