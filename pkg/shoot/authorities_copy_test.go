package shoot

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
)

// shownBy shows what a client reads.
type shownBy struct{ client client.Client }

// Get reads from the client.
func (s shownBy) Get(ctx context.Context, _ gardenobjects.User, key client.ObjectKey, object client.Object) error {
	return s.client.Get(ctx, key, object)
}

// TestCopiesInTheGarden checks that the copies of certificate authorities are written once, and again when they are lost.
func TestCopiesInTheGarden(t *testing.T) {
	in, store := up(t), fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
	requests := 0
	counted := interceptor.NewClient(store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			requests++
			return c.Get(ctx, key, object, options...)
		},
	})
	r := &reconciler{garden: counted, copies: shownBy{client: store}, copied: map[types.UID]copied{}}
	copies := func(what string, wantRequests bool) {
		t.Helper()
		requests = 0
		if err := r.copyToGarden(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if requests > 0 != wantRequests {
			t.Errorf("%s: %d requests", what, requests)
		}
	}
	authority := &corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one.ca-client"}}
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one.ca-cluster"}}
	read := func() {
		t.Helper()
		for _, object := range []client.Object{authority, bundle} {
			if err := store.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	copies("new", true)
	copies("nothing has changed", false)
	for _, object := range []client.Object{authority.DeepCopy(), bundle.DeepCopy()} {
		if err := store.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		copies("deleted", true)
		read()
	}
	copies("restored", false)

	bundle.Data["ca.crt"] = "of another cluster"
	authority.Labels = nil
	for _, object := range []client.Object{authority, bundle} {
		if err := store.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	copies("changed", true)
	read()
	if bundle.Data["ca.crt"] != "authority" || authority.Labels["gardener.cloud/role"] != "ca-client" {
		t.Errorf("%v, %v", bundle.Data, authority.Labels)
	}
	if bundle.Labels["discovery.gardener.cloud/public"] != "shoot-ca" || authority.Labels["discovery.gardener.cloud/public"] != "" {
		t.Errorf("published are %v, %v", bundle.Labels, authority.Labels)
	}
	copies("corrected", false)
}
