package controller

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
)

const (
	isTrue, isFalse, unknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	healthyType              = resourcesv1alpha1.ResourcesHealthy
)

var shop = types.NamespacedName{Namespace: "garden", Name: "shop"}

// with returns a ManagedResource with one condition and the given changes.
func with(conditionType resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus, reason string,
	changes ...func(*resourcesv1alpha1.ManagedResource),
) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	mr.Status.Conditions = []resourcesv1alpha1.Condition{{Type: conditionType, Status: status, Reason: reason}}
	for _, change := range changes {
		change(mr)
	}
	return mr
}

func TestConcerned(t *testing.T) {
	now := metav1.NewTime(noon)
	other := "blue"
	r := NewReconciler(Reconciler{Options: Options{Class: "resources"}})
	for name, test := range map[string]struct {
		mr   *resourcesv1alpha1.ManagedResource
		want bool
	}{
		"new":           {&resourcesv1alpha1.ManagedResource{}, false},
		"being applied": {with(resourcesv1alpha1.ResourcesApplied, "Progressing", "ApplyProgressing"), false},
		"applied":       {with(resourcesv1alpha1.ResourcesApplied, isTrue, "ApplySucceeded"), true},
		"failed":        {with(resourcesv1alpha1.ResourcesApplied, isFalse, "ApplyFailed"), true},
		"not decoded":   {with(resourcesv1alpha1.ResourcesApplied, isFalse, "DecodingFailed"), true},
		"pruning":       {with(resourcesv1alpha1.ResourcesApplied, "Progressing", "DeletionPending"), true},
		"deleting": {with(resourcesv1alpha1.ResourcesApplied, isTrue, "ApplySucceeded",
			func(mr *resourcesv1alpha1.ManagedResource) { mr.DeletionTimestamp = &now }), false},
		"ignored": {with(resourcesv1alpha1.ResourcesApplied, isTrue, "ApplySucceeded",
			func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "1"}
			}), false},
		"of another class": {with(resourcesv1alpha1.ResourcesApplied, isTrue, "ApplySucceeded",
			func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = &other }), false},
		"held by another class": {with(resourcesv1alpha1.ResourcesApplied, isTrue, "ApplySucceeded",
			func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Finalizers = []string{resourcesv1alpha1.FinalizerOf("blue")}
			}), false},
	} {
		if got := r.shouldCheck(test.mr); got != test.want {
			t.Errorf("%s: shouldCheck returned %t", name, got)
		}
	}
}

func TestRelevantChange(t *testing.T) {
	now := metav1.NewTime(noon)
	type change = func(*resourcesv1alpha1.ManagedResource)
	applied := func(changes ...change) *resourcesv1alpha1.ManagedResource {
		return with(resourcesv1alpha1.ResourcesApplied, isTrue, "ApplySucceeded", changes...)
	}
	ignore := func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	}
	say := func(status resourcesv1alpha1.ConditionStatus, reason string) change {
		return func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: healthyType, Status: status, Reason: reason})
		}
	}
	for name, test := range map[string]struct {
		before, after *resourcesv1alpha1.ManagedResource
		want          bool
	}{
		"nothing":           {applied(), applied(), false},
		"the spec":          {applied(), applied(func(mr *resourcesv1alpha1.ManagedResource) { mr.Generation = 2 }), true},
		"the deletion":      {applied(), applied(func(mr *resourcesv1alpha1.ManagedResource) { mr.DeletionTimestamp = &now }), true},
		"ignored":           {applied(), applied(ignore), true},
		"no longer ignored": {applied(ignore), applied(), true},
		"ignored as before": {applied(ignore), applied(ignore), false},
		"applied":           {with(resourcesv1alpha1.ResourcesApplied, "Progressing", "ApplyProgressing"), applied(), true},
		"applied anew":      {applied(), applied(func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.AppliedInputs = "x" }), true},
		"an object more": {applied(), applied(func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Resources = make([]resourcesv1alpha1.ObjectReference, 1)
		}), true},
		"what it says":       {applied(say(isTrue, "ResourcesHealthy")), applied(say(isFalse, "PodUnhealthy")), true},
		"the checks are due": {applied(say(isTrue, "ResourcesHealthy")), applied(say(unknown, "ChecksPending")), true},
		"a condition of others": {applied(), applied(func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: "Theirs"})
		}), false},
	} {
		if got := relevantChange().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: relevant is %t", name, got)
		}
	}
}

// TestEmitEvents checks that Events report when healthy objects become unhealthy, and when they are healthy again.
func TestEmitEvents(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := NewReconciler(Reconciler{Recorder: recorder})
	said := func(what string, before, after resourcesv1alpha1.ConditionStatus, message, want string) {
		t.Helper()
		r.emitEvents(with(healthyType, before, "x"), resourcesv1alpha1.NewStatement(after, "PodUnhealthy", message))
		got := ""
		select {
		case got = <-recorder.Events:
		default:
		}
		if got != want {
			t.Errorf("%s: the Event is %q, want %q", what, got, want)
		}
	}
	said("new objects", unknown, isFalse, "starting", "")
	said("healthy for the first time", isFalse, isTrue, "well", "")
	said("worse", isTrue, isFalse, "100% broken", "Warning PodUnhealthy 100% broken")
	said("worse in another way", isFalse, isFalse, "burning", "")
	said("not known", isFalse, unknown, "?", "")
	said("again", unknown, isTrue, "well", "Normal PodUnhealthy well")
	said("as before", isTrue, isTrue, "well", "")
	said("a long message", isTrue, isFalse, strings.Repeat("ü", 1000), "Warning PodUnhealthy "+strings.Repeat("ü", 450)+" …")
}

func TestMemories(t *testing.T) {
	memories := newMemories()
	memories.recordChange(shop, noon)
	memories.recordChange(shop, noon.Add(time.Minute))
	if got := memories.takeChange(shop); !got.Equal(noon) {
		t.Errorf("the first event came at %s", got)
	}
	if got := memories.takeChange(shop); !got.IsZero() {
		t.Errorf("an event is returned twice: %s", got)
	}
	memories.restoreChange(shop, time.Time{})
	memories.restoreChange(shop, noon.Add(time.Second))
	memories.recordChange(shop, noon.Add(time.Minute))
	memories.restoreChange(shop, noon)
	memories.restoreChange(shop, noon.Add(time.Hour))
	if got := memories.takeChange(shop); !got.Equal(noon) {
		t.Errorf("the first unanswered event came at %s", got)
	}
	memory := memories.of(shop)
	memory.warned, memory.unobserved = true, noon
	memories.recordChange(shop, noon)
	if memories.of(shop) != memory {
		t.Error("the memory of the ManagedResource is lost")
	}
	memories.pause(shop)
	if memory := memories.of(shop); !memory.warned || !memory.unobserved.IsZero() || !memories.takeChange(shop).IsZero() {
		t.Errorf("after a pause, %+v is remembered", memory)
	}
	memories.recordChange(shop, noon)
	memories.forget(shop)
	memories.pause(shop)
	if len(memories.byOwner) != 0 || len(memories.since) != 0 {
		t.Errorf("unused entries remain: %v %v", memories.byOwner, memories.since)
	}
}

// TestForget checks that no state of a deleted ManagedResource is kept, including its checks.
func TestForget(t *testing.T) {
	examiner := health.NewExaminer("", nil)
	view := live.NewView(live.Options{Examiner: examiner})
	r := NewReconciler(Reconciler{Live: view, Clock: clocktesting.NewFakeClock(noon), Options: Options{ClusterID: "seed"}})
	kind := resourcesv1alpha1.HealthCheck{Kind: "ConfigMap", Healthy: "true"}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name, Generation: 3}}
	mr.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{kind}
	if err := r.adoptChecks(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	r.forget(shop)
	if changed, err := examiner.SetOwn("seed:garden/shop", nil); len(changed) > 0 || err != nil {
		t.Errorf("the checks of %v were kept: %v", changed, err)
	}
	if since, err := view.AdoptedChecks("seed:garden/shop"); since != 0 || err != nil {
		t.Errorf("since generation %d: %v", since, err)
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics := NewMetrics(registry)
	bank := types.NamespacedName{Namespace: "garden", Name: "bank"}
	metrics.concluded(shop, isTrue, isFalse, time.Time{}, noon)
	metrics.concluded(bank, isFalse, isTrue, noon.Add(-time.Second), noon)
	metrics.concluded(bank, isTrue, isTrue, time.Time{}, noon)
	metrics.concluded(bank, isTrue, isTrue, time.Time{}, noon)
	metrics.forget(shop)
	metrics.forget(shop)
	want := map[string]float64{
		"ResourcesHealthy False": 0, "ResourcesHealthy True": 1, "ResourcesProgressing False": 0, "ResourcesProgressing True": 1,
	}
	if got := statesIn(t, registry); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	metrics.forget(bank)
	if len(metrics.known) != 0 {
		t.Errorf("unused entries remain: %v", metrics.known)
	}
	var none *Metrics
	none.concluded(shop, isTrue, isFalse, noon, noon)
	none.forget(shop)
}

// statesIn returns the number of ManagedResources per state. It also checks that one delay of a second was measured.
func statesIn(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "resource_manager_health_report_duration_seconds":
				if delay := metric.GetHistogram(); delay.GetSampleCount() != 1 || delay.GetSampleSum() != 1 {
					t.Errorf("the delays are %v", delay)
				}
			case "resource_manager_managed_resources_health":
				states[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetGauge().GetValue()
			}
		}
	}
	return states
}

// TestExplain checks that Events are read on a separate schedule for each object. The schedule ends, and it starts again after
// the object was healthy.
func TestExplain(t *testing.T) {
	m, reads := &memory{}, map[string]int{}
	clock := clocktesting.NewFakeClock(noon)
	look := func(names ...string) time.Duration {
		var subjects []*health.Subject
		for _, name := range names {
			subjects = append(subjects, &health.Subject{Kind: "Pod", Name: name})
		}
		again := m.explain(subjects, clock.Now(), func(subject *health.Subject) string {
			reads[subject.Name]++
			return fmt.Sprint(subject.Name, reads[subject.Name])
		})
		for _, subject := range subjects {
			if want := fmt.Sprint(subject.Name, reads[subject.Name]); subject.Notes != want {
				t.Errorf("%s has the notes %q, want %q", subject.Name, subject.Notes, want)
			}
		}
		return again
	}
	expect := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	expect("immediately", look("a"), 10*time.Second)
	clock.Step(4 * time.Second)
	expect("between two reads", look("a"), 6*time.Second)
	expect("read", reads["a"], 1)
	for _, wait := range []time.Duration{6 * time.Second, time.Minute, 5 * time.Minute} {
		clock.Step(wait)
		look("a")
	}
	expect("read", reads["a"], 4)
	clock.Step(24 * time.Hour)
	expect("the end", look("a"), time.Duration(0))
	expect("read", reads["a"], 4)
	expect("another object, long after", look("a", "b"), 10*time.Second)
	expect("read", reads["b"], 1)
	look("b")
	look("a", "b")
	expect("unhealthy again", reads["a"], 5)
	expect("still unhealthy", reads["b"], 1)
	expect("all healthy", look(), time.Duration(0))
	expect("remembered", len(m.explanations), 0)
}

func TestUnhealthyAmong(t *testing.T) {
	subject := func(name string, change func(*health.Subject)) health.Subject {
		s := health.Subject{Kind: "Pod", Name: name, Verdict: broken}
		change(&s)
		return s
	}
	same := func(*health.Subject) {}
	subjects := []health.Subject{
		subject("healthy", func(s *health.Subject) { s.Verdict = health.Verdict{} }),
		subject("exempt", func(s *health.Subject) { s.Exempt = true }),
		subject("pending", func(s *health.Subject) { s.Pending = true }),
		subject("unobserved", func(s *health.Subject) { s.Verdict = unobserved }),
		subject("missing", func(s *health.Subject) { s.Verdict, s.Missing = health.Verdict{}, true }),
		subject("a", same), subject("b", same), subject("c", same), subject("d", same),
	}
	var names []string
	for _, s := range unhealthyAmong(subjects) {
		names = append(names, s.Name)
		s.Notes = "explained"
	}
	if got := strings.Join(names, " "); got != "a b c" || subjects[5].Notes == "" {
		t.Errorf("got notes for %s", got)
	}
}

func TestSoonest(t *testing.T) {
	if got := soonest(0, 3, 0, 2, 5); got != 2 {
		t.Errorf("got %d", got)
	}
	if got := soonest(0, 0); got != 0 {
		t.Errorf("got %d", got)
	}
}

func TestRefOf(t *testing.T) {
	mr := with(healthyType, isTrue, "x", func(mr *resourcesv1alpha1.ManagedResource) {
		for _, kind := range []string{"StatefulSet", "Deployment"} {
			entry := resourcesv1alpha1.ObjectReference{}
			entry.APIVersion, entry.Kind, entry.Namespace, entry.Name = "apps/v1", kind, "a", "web"
			mr.Status.Resources = append(mr.Status.Resources, entry)
		}
	})
	ref := refOf(mr, &health.Subject{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "web"})
	if got := ref.GroupVersionKind.String() + " " + ref.Namespace + "/" + ref.Name; got != "apps/v1, Kind=Deployment a/web" {
		t.Errorf("got %s", got)
	}
}
