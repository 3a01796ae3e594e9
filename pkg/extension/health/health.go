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

// The conditions that gardenlet merges into those of the Shoot.
const (
	SystemComponentsHealthy        corev1beta1.ConditionType = "SystemComponentsHealthy"
	EveryNodeReady                 corev1beta1.ConditionType = "EveryNodeReady"
	ControlPlaneHealthy            corev1beta1.ConditionType = "ControlPlaneHealthy"
	ObservabilityComponentsHealthy corev1beta1.ConditionType = "ObservabilityComponentsHealthy"
)

// The reasons of conditions, as Gardener's.
const (
	// ReasonSuccessful goes with True: all checks have found that what they look at is healthy, or the Shoot is hibernated.
	ReasonSuccessful = "HealthCheckSuccessful"
	// ReasonUnsuccessful goes with False.
	ReasonUnsuccessful = "HealthCheckUnsuccessful"
	// ReasonProgressing goes with Progressing.
	ReasonProgressing = "HealthCheckProgressing"
	// ReasonError goes with Unknown: a check could not be made.
	ReasonError = "ConditionCheckError"
)

// Finding is what a check has found.
type Finding struct {
	// Status is True, False, or Progressing: what is not healthy now, but may become so within the threshold of the check.
	Status corev1beta1.ConditionStatus
	// Message says what is not healthy, as a sentence.
	Message string
	// Codes of what is not healthy.
	Codes []corev1beta1.ErrorCode
}

// Healthy returns that all is well.
func Healthy() Finding { return Finding{Status: corev1beta1.ConditionTrue} }

// Unhealthy returns that something is not.
func Unhealthy(message string, codes ...corev1beta1.ErrorCode) Finding {
	return Finding{Status: corev1beta1.ConditionFalse, Message: message, Codes: codes}
}

// Progressing returns that something is not well, but may become so.
func Progressing(message string) Finding {
	return Finding{Status: corev1beta1.ConditionProgressing, Message: message}
}

// LookFunc looks at one thing of an object. It reads caches.
type LookFunc[T extensionsv1alpha1.Object] func(ctx context.Context, object T, cluster *extension.Cluster) (Finding, error)

// Check looks at one thing. An error makes the condition Unknown.
type Check[T extensionsv1alpha1.Object] struct {
	// Condition that the check contributes to: the worst finding of its checks decides.
	Condition corev1beta1.ConditionType
	// Look looks.
	Look LookFunc[T]
	// ProgressingThreshold is after how long Progressing becomes False; 0 for 5 minutes.
	ProgressingThreshold time.Duration
	// WhileHibernated has the check made for a hibernated Shoot, too. Otherwise it is healthy then.
	WhileHibernated bool
}

// Options of a controller.
type Options[T extensionsv1alpha1.Object] struct {
	// Type and Classes as in [extension.Options].
	Type    string
	Classes []extensionsv1alpha1.ExtensionClass
	Checks  []Check[T]
	// Obsolete are conditions that an older version of the extension reported, and that are removed.
	Obsolete []corev1beta1.ConditionType
	// Sources have objects looked at when what is checked changes. An object is also looked at when its generation or its last operation
	// changes.
	Sources []source.Source
	// Every is how often each object is looked at beside that; 0 for never.
	Every time.Duration
	// Clock; nil for that of the machine.
	Clock clock.PassiveClock
}
