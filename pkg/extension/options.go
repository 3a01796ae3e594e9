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

// Options are the options of a controller. All fields except Type have defaults.
type Options struct {
	// Type of the objects for which the actuator is responsible. Add an actuator once for each type.
	Type string
	// Classes of these objects. It defaults to the class shoot.
	Classes []extensionsv1alpha1.ExtensionClass
	// IgnoreOperationAnnotation reconciles an object when its generation changes, without a request from gardenlet. It is
	// for use without gardenlet.
	IgnoreOperationAnnotation bool
	// MaxConcurrentReconciles is the number of objects for which the actuator is called concurrently. It defaults to 5.
	MaxConcurrentReconciles int
	// Timeout of one call of the actuator. The default depends on the kind: 20 minutes for Infrastructures, Workers and
	// Bastions, 3 for others.
	Timeout time.Duration
	// Sources trigger the actuator for objects when something changes for which an operation waits, or on which the status
	// depends. If the last operation of the object is finished, such a call can change the status except lastOperation.
	Sources []source.Source
	// RateLimiter of retries. The default is an exponential delay from 1 second to 5 minutes. Errors with codes for which a
	// retry cannot help are retried after 10 minutes.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Clock defaults to the real clock if it is nil.
	Clock clock.PassiveClock
}

// AddToScheme adds the kinds that the library reads and writes to the scheme of a client: those of extensions, of the
// garden, and ManagedResources. The kinds of Kubernetes come from k8s.io/client-go/kubernetes/scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.SchemeBuilder{extensionsv1alpha1.AddToScheme, corev1beta1.AddToScheme, resourcesv1alpha1.AddToScheme}
	return builder.AddToScheme(scheme)
}
