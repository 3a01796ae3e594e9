package controllerregistration

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/installation"
)

// refusing is a fake API server that has a newer version of each object than the cache.
type refusing struct{ client.Client }

func (refusing) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return apierrors.NewConflict(schema.GroupResource{}, "name", nil)
}

func (r refusing) Patch(ctx context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return r.Delete(ctx, object)
}

// TestChangedMeanwhile checks that a step is retried soon if the API server refuses it because the object has changed. The
// watch alone does not cause a retry, because most changes of an installation do not affect the decision.
func TestChangedMeanwhile(t *testing.T) {
	seen := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", ResourceVersion: "1"}}
	in := installation.Inputs{Installations: []*corev1beta1.ControllerInstallation{seen}}
	r := &seedReconciler{controllers: controllers{cached: refusing{}}}
	for _, action := range []installation.Action{installation.ActionUpdate, installation.ActionDelete} {
		again, err := r.carryOut(t.Context(), in, installation.Decision{Steps: []installation.Step{{Action: action, Installation: seen}}})
		if err != nil || !again {
			t.Errorf("%s: again %t, error %v", action, again, err)
		}
	}
}
