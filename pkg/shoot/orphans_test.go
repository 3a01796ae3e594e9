package shoot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
)

// TestOrphanIsReported removes a Shoot from the garden while its control plane exists. It is reported once, after a time in which a cache
// could show ManagedResources that are deleted, and nothing is deleted.
func TestOrphanIsReported(t *testing.T) {
	scheme, clock, recorder := newScheme(t), clocktesting.NewFakePassiveClock(time.Now()), events.NewFakeRecorder(10)
	mr := func(namespace, owner string) *resourcesv1alpha1.ManagedResource {
		return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "etcd-main", Labels: map[string]string{flow.LabelFlow: FlowName}, Annotations: map[string]string{flow.AnnotationOwner: owner},
		}}
	}
	orphan := mr("shoot--dev--one", "garden-dev/one")
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(orphan, mr("shoot--dev--two", "garden-dev/two")).Build()
	r := reporter(t)
	r.options.Clock, r.events, r.objects = clock, recorder, gardenobjects.New(nil)
	r.garden = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: r.options.SeedName}}).Build()
	r.emitter = &flow.Emitter{Reader: seed}

	look := func(name string, again time.Duration, reports string) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "garden-dev", Name: name}})
		if err != nil || result.RequeueAfter != again {
			t.Errorf("%s: %+v, %v, want to look again after %s", name, result, err, again)
		}
		report := ""
		select {
		case report = <-recorder.Events:
		default:
		}
		if (report != "") != (reports != "") || !strings.Contains(report, reports) {
			t.Errorf("%s: reported %q, want %q", name, report, reports)
		}
	}
	look("three", 0, "")
	look("one", orphanedAfter, "")
	clock.SetTime(clock.Now().Add(orphanedAfter / 2))
	look("one", orphanedAfter/2, "")
	clock.SetTime(clock.Now().Add(orphanedAfter))
	look("one", 0, "Shoot garden-dev/one is in the namespaces [shoot--dev--one]")
	look("one", 0, "")
	if err := seed.Delete(t.Context(), orphan); err != nil {
		t.Fatalf("the control plane was deleted: %v", err)
	}
	look("one", 0, "")
	if len(r.orphans.since) > 0 || len(r.orphans.reported) > 0 {
		t.Errorf("deleted control planes are remembered: %v, %v", r.orphans.since, r.orphans.reported)
	}
}
