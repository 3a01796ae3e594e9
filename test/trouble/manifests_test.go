package trouble

import (
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestEmptiedSecret empties the Secret of a ManagedResource, deletes it, and fills it again. No object may be
// deleted in between. A key without manifests means that no object is wanted.
func TestEmptiedSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startManager()
	objects := []string{configMap("one", "1"), configMap("two", "1")}
	w.declare("set", objects...)
	w.eventuallyHolds("at first")
	before := w.uid(objects[0])

	w.secretWith("set", nil)
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonCannotReadSecret, "all referenced Secrets are empty", "nothing is pruned")
	kit.Must(t, w.client.Delete(t.Context(), w.secretNamed("set")))
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonCannotReadSecret, "not found", "nothing is pruned")
	w.secretWith("set", map[string][]byte{})
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonCannotReadSecret, "all referenced Secrets are empty")
	w.declare("set", objects...)
	w.eventuallyHolds("filled again")
	if after := w.uid(objects[0]); after != before {
		t.Errorf("the UID is %s, was %s", after, before)
	}

	w.note("set", nil)
	w.secretWith("set", map[string][]byte{"objects.yaml": nil})
	w.eventuallyHolds("with an empty key")
	w.secretWith("set", nil)
	w.declare("other")
	w.secretWith("other", nil)
	w.eventuallyHolds("without objects, a Secret may be empty")
}

// TestBackAndForth changes manifests from A to B to A faster than they are applied, so that the final manifests
// equal the initial ones.
func TestBackAndForth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startManager()
	a := []string{configMap("one", "a"), configMap("of-a", "1"), service("both", 1)}
	b := []string{configMap("one", "b"), configMap("of-b", "1"), service("both", 2)}
	w.declare("set", a...)
	w.eventuallyHolds("at first")
	before := w.uid(a[2])
	for range 10 {
		w.declare("set", b...)
		w.declare("set", a...)
	}
	w.eventuallyHolds("back at A")
	w.declare("set", b...)
	w.eventuallyHolds("at B")
	w.declare("set", a...)
	w.eventuallyHolds("back at A")
	if after := w.uid(a[2]); after != before {
		t.Errorf("the UID of the always wanted object is %s, was %s", after, before)
	}
}

// TestSameName repeatedly deletes a ManagedResource and creates one with the same name, with other objects and
// with the same objects.
func TestSameName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startManager()
	for round := range 4 {
		objects := []string{configMap("always", "1"), configMap([]string{"even", "odd"}[round%2], "1")}
		w.declare("set", objects...)
		if round%2 == 0 {
			w.eventuallyHolds("created")
		}
		uid := w.read("set").UID
		w.undeclare("set")
		kit.EventuallyTrue(t, "the ManagedResource is deleted", func() bool { return w.gone("set", uid) })
	}
	w.eventuallyHolds("in the end")
	w.declare("set", configMap("always", "2"))
	w.eventuallyHolds("created once more")

	// A user deletes an object and creates one with the same name, without our marks.
	w.delete(configMap("always", ""))
	obj := w.parse(configMap("always", "of a user"))
	if err := w.client.Create(t.Context(), obj); err != nil {
		t.Logf("the resource-manager was faster: %v", err)
	}
	w.eventuallyHolds("after the adoption")
}
