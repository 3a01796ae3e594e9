package seedfacts

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// TestFactsAreReadAgain checks that an upgrade of the seed, and a garden that appears in it, are noticed while gardenlet
// runs, that the facts are not read more often than necessary, and that an error does not make known facts unknown.
func TestFactsAreReadAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seed := fake.NewClientBuilder().WithScheme(scheme).Build()
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	version, failed, reads, changes := "1.36.0", error(nil), 0, 0
	r := &Reader{Uncached: seed, Clock: clock, Server: func(context.Context) (string, error) {
		reads++
		return version, failed
	}}
	r.OnChange(func() { changes++ })
	want := func(facts Facts, wantedReads, wantedChanges int) {
		t.Helper()
		if got, err := r.Get(t.Context()); err != nil || got != facts || reads != wantedReads || changes != wantedChanges {
			t.Errorf("%+v after %d reads and %d changes, error %v", got, reads, changes, err)
		}
	}
	later := func() { clock.SetTime(clock.Now().Add(readEvery)) }
	failed = errors.New("no connection")
	if _, err := r.Get(t.Context()); err == nil {
		t.Error("unknown facts are returned")
	}
	failed = nil
	want(Facts{Version: "1.36.0"}, 2, 0)
	version = "1.37.0"
	if err := seed.Create(t.Context(), &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}); err != nil {
		t.Fatal(err)
	}
	want(Facts{Version: "1.36.0"}, 2, 0)
	later()
	want(Facts{Version: "1.37.0", IsGarden: true}, 3, 1)
	later()
	failed = errors.New("no connection")
	want(Facts{Version: "1.37.0", IsGarden: true}, 4, 1)
	failed = nil
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "another", Annotations: map[string]string{constants.AnnotationGardenExposure: "Istio"}}}
	garden.Status.Gardener = &corev1beta1.Gardener{Version: "v2"}
	if err := seed.Create(t.Context(), garden); err != nil {
		t.Fatal(err)
	}
	r.expire()
	want(Facts{Version: "1.37.0", IsGarden: true, HasIstio: true, OperatorVersion: "v2"}, 5, 3)
}
