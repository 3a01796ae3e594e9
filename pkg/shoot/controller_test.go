package shoot

import (
	"context"
	"errors"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestStatusThatCannotBeWritten makes the API server refuse the status of a successful creation. The error that is then
// reported is one of the creation.
func TestStatusThatCannotBeWritten(t *testing.T) {
	refuses := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("etcdserver: leader changed")
		},
	})
	r := &reconciler{garden: refuses, options: Options{Clock: clock.RealClock{}}}
	shoot := &corev1beta1.Shoot{}
	shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateProcessing, Progress: 90}
	status := *shoot.Status.DeepCopy()
	status.LastOperation.State, status.LastOperation.Progress = corev1beta1.LastOperationStateSucceeded, 100
	err := r.write(t.Context(), shoot, status)
	if err == nil {
		t.Fatal("the status was written")
	}
	if last := shoot.Status.LastOperation; last.State != corev1beta1.LastOperationStateProcessing {
		t.Errorf("the Shoot has the status that could not be written: %+v", last)
	}
	if last := r.failed(shoot, err.Error()).LastOperation; last.Type != corev1beta1.LastOperationTypeCreate || last.Progress != 90 {
		t.Errorf("the error is reported as %+v", last)
	}
}
