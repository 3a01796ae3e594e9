package shootmaintenance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// TestRefusals checks what happens if the API server refuses changes or is not available, and if the clock of the process is wrong.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// expired is set for a forced update.
		expired            bool
		dryRun, patch      error
		clock              error
		state              corev1beta1.LastOperationState
		version, operation string
		wantErr            bool
	}{
		"nothing":       {false, nil, nil, nil, corev1beta1.LastOperationStateSucceeded, "1.34.3", "reconcile", false},
		"forced":        {true, nil, nil, nil, corev1beta1.LastOperationStateSucceeded, "1.34.3", "reconcile", false},
		"wrong clock":   {true, nil, nil, errors.New("wrong clock"), "", "1.34.2", "maintain", true},
		"invalid":       {false, apierrors.NewBadRequest("no"), nil, nil, corev1beta1.LastOperationStateFailed, "1.34.2", "", false},
		"not available": {false, apierrors.NewServiceUnavailable("no"), nil, nil, corev1beta1.LastOperationStateProcessing, "1.34.2", "maintain", true},
		"conflict":      {false, nil, apierrors.NewConflict(corev1beta1.Resource("shoots"), "a", errors.New("changed")), nil, corev1beta1.LastOperationStateProcessing, "1.34.2", "maintain", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := served.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			shoot := clusterWith("1.34.2", "1.0.0")
			shoot.Namespace, shoot.Name, shoot.Spec.CloudProfileName = "garden-dev", "a", ptr.To("local")
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationGardenerOperation, constants.OperationMaintain)
			shoot.Spec.Maintenance.AutoUpdate.KubernetesVersion = !test.expired
			versions := []string{"1.34.2", "1.34.3"}
			if test.expired {
				versions[0] += " expired"
			}
			profile := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: *profileWith(versions, []string{"1.0.0"}, "major")}
			fakes := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot, profile).WithStatusSubresource(shoot).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, all ...client.PatchOption) error {
					options := (&client.PatchOptions{}).ApplyOptions(all)
					if len(options.DryRun) > 0 {
						return test.dryRun
					}
					if test.patch != nil {
						return test.patch
					}
					return c.Patch(ctx, object, patch, all...)
				},
			}).Build()
			r := &reconciler{
				client: fakes, live: fakes, recorder: events.NewFakeRecorder(10), clock: testclock.NewFakePassiveClock(now), settings: &v1alpha1.ShootMaintenance{},
				checkClock: func(context.Context, time.Time) error { return test.clock },
			}
			key := client.ObjectKeyFromObject(shoot)
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); (err != nil) != test.wantErr {
				t.Fatal(err)
			}
			if err := fakes.Get(t.Context(), key, shoot); err != nil {
				t.Fatal(err)
			}
			state := ptr.Deref(shoot.Status.LastMaintenance, corev1beta1.LastMaintenance{}).State
			if state != test.state || shoot.Spec.Kubernetes.Version != test.version || shoot.Annotations[constants.AnnotationGardenerOperation] != test.operation {
				t.Errorf("got %q, %s, %q", state, shoot.Spec.Kubernetes.Version, shoot.Annotations[constants.AnnotationGardenerOperation])
			}
			if state == corev1beta1.LastOperationStateFailed && ptr.Deref(shoot.Status.LastMaintenance.FailureReason, "") == "" {
				t.Error("the status does not say why")
			}
			if again, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !test.wantErr && (err != nil || again.RequeueAfter <= 0) {
				t.Errorf("%s: %v", fmt.Sprint(again), err)
			}
		})
	}
}
