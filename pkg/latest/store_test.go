package latest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func object(uid types.UID, version string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{}
	made.Namespace, made.Name, made.UID, made.ResourceVersion = "garden", "one", uid, version
	return made
}

func TestNewest(t *testing.T) {
	for name, test := range map[string]struct {
		cached, want *corev1.ConfigMap
		remembered   int
	}{
		"older":                    {object("a", "9"), object("a", "10"), 1},
		"the same":                 {object("a", "10"), object("a", "10"), 0},
		"newer":                    {object("a", "11"), object("a", "11"), 0},
		"another with this name":   {object("b", "9"), object("b", "9"), 0},
		"versions without order":   {object("a", "x"), object("a", "x"), 0},
		"nothing in the cache yet": {object("a", ""), object("a", ""), 0},
	} {
		var store Store[*corev1.ConfigMap]
		store.Remember(object("a", "10"))
		got := store.Newest(test.cached)
		if got.UID != test.want.UID || got.ResourceVersion != test.want.ResourceVersion || len(store.written) != test.remembered {
			t.Errorf("%s: got %s %s, %d remembered", name, got.UID, got.ResourceVersion, len(store.written))
		}
	}
}

// TestGone checks that an object whose last finalizer was removed stays gone, although the API server returned it in the revision that the
// cache has.
func TestGone(t *testing.T) {
	cached := object("a", "10")
	cached.DeletionTimestamp, cached.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"gardener"}
	written := cached.DeepCopy()
	written.Finalizers = nil
	var store Store[*corev1.ConfigMap]
	store.Remember(written)
	for range 2 {
		if got := store.Newest(cached); len(got.Finalizers) > 0 {
			t.Error("the deleted object is read again")
		}
	}
	store.Forget(client.ObjectKeyFromObject(cached))
	if got := store.Newest(cached); len(got.Finalizers) == 0 {
		t.Error("a deleted object is remembered after it was forgotten")
	}
}

// TestCopies checks that neither the writer nor a reader changes what is remembered.
func TestCopies(t *testing.T) {
	var store Store[*corev1.ConfigMap]
	if got := store.Newest(object("a", "1")); got.ResourceVersion != "1" {
		t.Errorf("an empty store returns %s", got.ResourceVersion)
	}
	written := object("a", "10")
	store.Remember(written)
	written.ResourceVersion = "12"
	store.Newest(object("a", "9")).ResourceVersion = "13"
	if got := store.Newest(object("a", "9")); got.ResourceVersion != "10" {
		t.Errorf("got %s", got.ResourceVersion)
	}
}

func TestForget(t *testing.T) {
	var store Store[*corev1.ConfigMap]
	store.Remember(object("a", "10"))
	store.Forget(client.ObjectKey{Namespace: "garden", Name: "two"})
	if got := store.Newest(object("a", "9")); got.ResourceVersion != "10" {
		t.Errorf("another object was forgotten: got %s", got.ResourceVersion)
	}
	store.Forget(client.ObjectKey{Namespace: "garden", Name: "one"})
	if got := store.Newest(object("a", "9")); got.ResourceVersion != "9" {
		t.Errorf("got %s", got.ResourceVersion)
	}
}
