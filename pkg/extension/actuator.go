package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Actuator implements the operations of extension objects of one kind and type. T is a pointer to the kind, such as
// *extensionsv1alpha1.Infrastructure.
//
// Each method can be called again at any time, even after it has succeeded, and continues the work of earlier calls. It
// does not block on long operations. Instead it returns [Wait] and is called again. Its context ends after the timeout of
// the kind.
//
// The object is a copy. The method writes the results of the kind (nodesCIDR, cloudConfig, providerStatus, state,
// resources and so on) to its status, see [SetProviderStatus] and [SetState]. They are stored after each call, even if it
// failed. The controller sets lastOperation, lastError and observedGeneration itself, and ignores changes of spec and
// metadata. status.lastOperation.type is Create until the first success, and Reconcile afterwards.
//
// The cluster is nil if the object does not belong to a Shoot, or if it is being deleted and the Cluster no longer exists.
//
// [WithCodes] adds codes to an error, which determine whether the Shoot is retried.
type Actuator[T extensionsv1alpha1.Object] interface {
	// Reconcile creates or updates the resources that the object declares.
	Reconcile(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// Delete deletes them. The finalizer of the object is removed when it returns [Done].
	Delete(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// ForceDelete deletes what it can in the cluster and does not call the infrastructure. Users have requested a forced
	// deletion of the Shoot, and clean up the infrastructure themselves. The finalizer of the object is removed when it
	// returns [Done].
	ForceDelete(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// Migrate deletes the objects in this cluster, because another seed takes over. It retains resources in the
	// infrastructure and in the Shoot. When it returns [Done], status.state and status.resources contain everything that
	// Restore needs.
	Migrate(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// Restore takes over from another seed, based on status.state and status.resources.
	Restore(ctx context.Context, object T, cluster *Cluster) (Result, error)
}

// ConfigValidator is implemented by an [Actuator] that validates the configuration of objects against the infrastructure.
// It is called before Reconcile and Restore. Errors get the code ERR_CONFIGURATION_PROBLEM. The exception is
// [field.InternalError], which means that a check could not run. It is retried.
type ConfigValidator[T extensionsv1alpha1.Object] interface {
	Validate(ctx context.Context, object T, cluster *Cluster) field.ErrorList
}

// Result is the progress of an operation. [Done] and [Wait] return it.
type Result struct {
	// Waiting is the reason why the operation is not finished, as a sentence without a period. It is empty if it is finished.
	Waiting string
	// Progress of an unfinished operation, in percent. It defaults to 50.
	Progress int32
	// Again is the delay until the method is called again. 0 means that a watch triggers it, see [Options.Sources]. A
	// finished operation is also repeated after this delay, unless it is 0. Repetitions of a finished operation do not
	// change lastOperation.
	Again time.Duration
}

// Done returns the result of a finished operation.
func Done() Result { return Result{} }

// Wait returns the result of an operation that waits. The method is called again after the given delay. 0 means that a watch triggers it.
func Wait(again time.Duration, format string, args ...any) Result {
	return Result{Waiting: fmt.Sprintf(format, args...), Again: again}
}

// SetProviderStatus sets status.providerStatus to a value, which is encoded as JSON. A value of an API type needs its apiVersion and kind.
func SetProviderStatus(object extensionsv1alpha1.Object, value any) error {
	raw, err := encode(value)
	if err != nil {
		return fmt.Errorf("encode the provider status of %s: %w", object.GetName(), err)
	}
	object.GetExtensionStatus().ProviderStatus = raw
	return nil
}

// SetState sets status.state to a value, which is encoded as JSON.
func SetState(object extensionsv1alpha1.Object, value any) error {
	raw, err := encode(value)
	if err != nil {
		return fmt.Errorf("encode the state of %s: %w", object.GetName(), err)
	}
	object.GetExtensionStatus().State = raw
	return nil
}

// encode returns the JSON encoding of a value.
func encode(value any) (*runtime.RawExtension, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &runtime.RawExtension{Raw: text}, nil
}
