package project

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestPhaseIsWrittenOnce checks that a phase is written once although the cache shows the Project as it was before: its Event
// would follow twice.
func TestPhaseIsWrittenOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	kit.Must(t, corev1beta1.AddToScheme(scheme))
	stored := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1beta1.Project{}).WithObjects(dev()).Build()
	r := &reconciler{client: stored}
	present := &corev1beta1.Project{}
	kit.Must(t, stored.Get(t.Context(), client.ObjectKeyFromObject(dev()), present))
	old := present.DeepCopy()
	if written, err := r.setPhase(t.Context(), present, corev1beta1.ProjectReady); !written || err != nil {
		t.Errorf("the first time: written %t, %v", written, err)
	}
	if written, err := r.setPhase(t.Context(), present, corev1beta1.ProjectReady); written || err != nil {
		t.Errorf("the phase is there: written %t, %v", written, err)
	}
	if written, err := r.setPhase(t.Context(), old, corev1beta1.ProjectReady); written || !apierrors.IsConflict(err) {
		t.Errorf("from an old state: written %t, %v, want a conflict", written, err)
	}
}
