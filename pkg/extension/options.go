package extension

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Options of a controller. The zero value of each field but Type is a default.
type Options struct {
	// Type of the objects that the actuator is responsible for. An actuator that is responsible for several ones is added for each.
	Type string
	// Classes of these objects; empty for shoot alone.
	Classes []extensionsv1alpha1.ExtensionClass
	// IgnoreOperationAnnotation has an object reconciled when its generation changes, without an operation that gardenlet asks for. It is
	// for use without gardenlet.
	IgnoreOperationAnnotation bool
	// MaxConcurrentReconciles is for how many objects the actuator is called at a time; 0 for 5.
	MaxConcurrentReconciles int
	// Timeout of one call of the actuator; 0 for that of the kind: 20 minutes for Infrastructures, Workers and Bastions, 3 for others.
	Timeout time.Duration
	// Sources have the actuator called for the objects that they name: for what an operation waits for, and for what the status of an
	// object reports. A call that they cause for an object whose last operation is finished writes what it changes in the status, but
	// not lastOperation.
	Sources []source.Source
	// RateLimiter of calls after errors; nil for 1 second to 5 minutes. An error with a code that trying again does not help against is
	// tried again after 10 minutes.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Clock; nil for that of the machine.
	Clock clock.PassiveClock
}

// AddToScheme adds the kinds that the library reads and writes to a scheme of a client: those of extensions, of the garden, and
// ManagedResources. Those of Kubernetes come from k8s.io/client-go/kubernetes/scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.SchemeBuilder{extensionsv1alpha1.AddToScheme, corev1beta1.AddToScheme, resourcesv1alpha1.AddToScheme}
	return builder.AddToScheme(scheme)
}
