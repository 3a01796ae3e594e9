package requeue

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestBackoff checks that the delay after failed requests for an object doubles up to its limit, apart from those for other objects, and begins again
// after a success.
func TestBackoff(t *testing.T) {
	t.Parallel()
	delays := Backoff()
	one, other := reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}, reconcile.Request{NamespacedName: types.NamespacedName{Name: "other"}}
	before := delays.When(one)
	if before != firstRetry {
		t.Errorf("the first delay is %s", before)
	}
	for before < lastRetry {
		delay := delays.When(one)
		if delay != min(2*before, lastRetry) {
			t.Fatalf("%s is followed by %s", before, delay)
		}
		before = delay
	}
	if delay := delays.When(one); delay != lastRetry {
		t.Errorf("the limit is exceeded: %s", delay)
	}
	if delay := delays.When(other); delay != firstRetry {
		t.Errorf("the delay of another object is %s", delay)
	}
	delays.Forget(one)
	if delay := delays.When(one); delay != firstRetry {
		t.Errorf("the first delay after a success is %s", delay)
	}
}
