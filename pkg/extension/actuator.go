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

// Actuator does what objects of one kind and type ask for. T is a pointer to the kind, such as *extensionsv1alpha1.Infrastructure.
//
// Each method can be called again at any time, also after it has succeeded, and continues what an earlier call has begun. It does not wait for
// what takes long: it returns [Wait], and is called again. Its context ends after the time-out of the kind.
//
// The object is a copy. The method writes into its status what the kind reports (nodesCIDR, cloudConfig, providerStatus, state, resources
// and so on; see [SetProviderStatus] and [SetState]). That is stored after each call, also after one that failed. The controller sets
// lastOperation, lastError and observedGeneration itself, and ignores changes of spec and metadata. status.lastOperation.type is Create until
// the first success, and Reconcile afterwards.
//
// The cluster is nil if the object belongs to no Shoot, or if it is being deleted and the Cluster is gone.
//
// [WithCodes] adds codes to an error, which decide whether the Shoot is tried again.
type Actuator[T extensionsv1alpha1.Object] interface {
	// Reconcile creates what the object asks for, or brings it in line with the object.
	Reconcile(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// Delete deletes it. The object is released when it returns [Done].
	Delete(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// ForceDelete gives up what it can delete in the cluster, and calls no infrastructure: users have asked to force the deletion of the
	// Shoot, and clean up the infrastructure themselves. The object is released when it returns [Done].
	ForceDelete(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// Migrate gives up the objects in this cluster, because another seed takes over. What exists in the infrastructure, and what runs in the
	// Shoot, stays. All that Restore needs is in status.state and status.resources when it returns [Done].
	Migrate(ctx context.Context, object T, cluster *Cluster) (Result, error)
	// Restore takes over from another seed with what status.state and status.resources say.
	Restore(ctx context.Context, object T, cluster *Cluster) (Result, error)
}

// ConfigValidator is implemented by an [Actuator] that checks the configuration of objects against the infrastructure. It is called before
// Reconcile and Restore. Errors have the code ERR_CONFIGURATION_PROBLEM, except for those of [field.InternalError]: these say that a check
// could not be made, and it is repeated.
type ConfigValidator[T extensionsv1alpha1.Object] interface {
	Validate(ctx context.Context, object T, cluster *Cluster) field.ErrorList
}

// Result is how far an operation is. [Done] and [Wait] return it.
type Result struct {
	// Waiting says what the operation waits for, as a sentence without a period; empty if it is finished.
	Waiting string
	// Progress of an operation that waits, in percent; 0 for 50.
	Progress int32
	// Again is after how long the method is called again; 0 if a watch does that: see [Options.Sources]. An operation that is finished is
	// repeated after this time, too; 0 for never. Repetitions change lastOperation only if they belong to an operation that is not finished.
	Again time.Duration
}

// Done returns that the operation is finished.
func Done() Result { return Result{} }

// Wait returns that the operation waits for something, and that the method is called again after a time; 0 if a watch does that.
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

func encode(value any) (*runtime.RawExtension, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &runtime.RawExtension{Raw: text}, nil
}
