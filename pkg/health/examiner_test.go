package health

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
)

var (
	configMaps  = schema.GroupKind{Kind: "ConfigMap"}
	deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	widgets     = schema.GroupKind{Group: "example.org", Kind: "Widget"}
)

// saying returns a check that makes every object of a kind unhealthy with the given message.
func saying(gk schema.GroupKind, word string) resourcesv1alpha1.HealthCheck {
	return resourcesv1alpha1.HealthCheck{Group: gk.Group, Kind: gk.Kind, Healthy: "false", Message: "'" + word + "'"}
}

func examinerWith(t *testing.T, common ...resourcesv1alpha1.HealthCheck) *Examiner {
	t.Helper()
	compiled, err := expression.Compile(common)
	if err != nil {
		t.Fatal(err)
	}
	return NewExaminer(OtherKindsFailuresOnly, compiled)
}

// setOwn sets checks that compile, and returns the sorted kinds to examine again.
func setOwn(t *testing.T, e *Examiner, origin string, checks ...resourcesv1alpha1.HealthCheck) string {
	t.Helper()
	changed, err := e.SetOwn(origin, checks)
	if err != nil {
		t.Fatal(err)
	}
	return kindsOf(changed)
}

func kindsOf(kinds []schema.GroupKind) string {
	names := make([]string, 0, len(kinds))
	for _, gk := range kinds {
		names = append(names, gk.Kind)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// owned returns the metadata of an object of an origin.
func owned(origin string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "x", Annotations: map[string]string{resourcesv1alpha1.AnnotationOrigin: origin}}
}

// TestExaminerOrder checks that the checks of the object's own ManagedResource take precedence over those of the configuration,
// and these over the built-in ones, for typed and unstructured objects.
func TestExaminerOrder(t *testing.T) {
	e := examinerWith(t, saying(deployments, "common"))
	setOwn(t, e, "garden/shop", saying(deployments, "own"))
	plain := NewExaminer(OtherKindsFailuresOnly, nil)
	for name, test := range map[string]struct {
		examiner *Examiner
		origin   string
		want     string
	}{
		"own":      {e, "garden/shop", "own"},
		"common":   {e, "garden/bank", "common"},
		"nobody's": {e, "", "common"},
		"built in": {plain, "garden/shop", `condition "Available" is missing`},
	} {
		typed := &appsv1.Deployment{ObjectMeta: owned(test.origin)}
		untyped := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
		untyped.SetAnnotations(typed.Annotations)
		for _, obj := range []runtime.Object{typed, untyped} {
			if got := test.examiner.Examine(deployments, obj); got.Unhealthy != test.want {
				t.Errorf("%s, %T: got %+v, want %q", name, obj, got, test.want)
			}
		}
	}
	if got := e.Examine(configMaps, &corev1.ConfigMap{ObjectMeta: owned("garden/shop")}); got != (Verdict{}) {
		t.Errorf("for a kind without a check: %+v", got)
	}
}

// TestSetOwn checks that SetOwn returns the kinds whose checks changed.
func TestSetOwn(t *testing.T) {
	e := examinerWith(t)
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: kinds to examine again: %q, want %q", what, got, want)
		}
	}
	expect("none", setOwn(t, e, "shop"), "")
	if e.NeedsBody(configMaps) {
		t.Error("ConfigMaps are read without a check")
	}
	expect("the first", setOwn(t, e, "shop", saying(configMaps, "a")), "ConfigMap")
	expect("the same", setOwn(t, e, "shop", saying(configMaps, "a")), "")
	expect("another one", setOwn(t, e, "shop", saying(configMaps, "b")), "ConfigMap")
	expect("of another one", setOwn(t, e, "bank", saying(configMaps, "c")), "ConfigMap")
	expect("another kind", setOwn(t, e, "shop", saying(widgets, "d")), "ConfigMap Widget")
	if !e.NeedsBody(configMaps) {
		t.Error("ConfigMaps are not read although another ManagedResource has a check")
	}
	expect("the last one", setOwn(t, e, "bank"), "ConfigMap")
	if e.NeedsBody(configMaps) {
		t.Error("ConfigMaps are read without a check")
	}
	expect("one more kind", setOwn(t, e, "shop", saying(configMaps, "e"), saying(widgets, "d")), "ConfigMap")
	expect("another check of one of two kinds", setOwn(t, e, "shop", saying(configMaps, "f"), saying(widgets, "d")), "ConfigMap")
	expect("no checks any more", setOwn(t, e, "shop"), "ConfigMap Widget")
	e.Forget("shop")
	e.Forget("bank")
	e.Forget("unknown")
	if len(e.own) != 0 || len(e.asked) != 0 {
		t.Errorf("unused entries remain: %v %v", e.own, e.asked)
	}
}

// TestSetOwnError checks that health checks that do not compile do not apply, and that the error is the same every time.
func TestSetOwnError(t *testing.T) {
	e := examinerWith(t, saying(configMaps, "common"))
	setOwn(t, e, "shop", saying(configMaps, "own"))
	bad := []resourcesv1alpha1.HealthCheck{saying(widgets, "own"), {Kind: "ConfigMap", Healthy: "nonsense("}}
	changed, first := e.SetOwn("shop", bad)
	if first == nil || kindsOf(changed) != "ConfigMap" {
		t.Fatalf("the error is %v, kinds to examine again: %v", first, changed)
	}
	changed, second := e.SetOwn("shop", bad)
	if second == nil || second.Error() != first.Error() || len(changed) > 0 {
		t.Errorf("the second error is %v, kinds to examine again: %v", second, changed)
	}
	if got := e.Examine(configMaps, &corev1.ConfigMap{ObjectMeta: owned("shop")}); got.Unhealthy != "common" {
		t.Errorf("got %+v", got)
	}
	if got := setOwn(t, e, "shop", saying(configMaps, "own")); got != "ConfigMap" {
		t.Errorf("after the correction, kinds to examine again: %q", got)
	}
	setOwn(t, e, "shop")
	if changed, err := e.SetOwn("shop", nil); err != nil || len(changed) > 0 {
		t.Errorf("without checks: %v, %v", changed, err)
	}
}

func TestExaminerNeedsBody(t *testing.T) {
	e := examinerWith(t, saying(configMaps, "common"))
	for gk, want := range map[schema.GroupKind]bool{
		configMaps: true, deployments: true, widgets: true, {Kind: "Secret"}: false, {Kind: "ServiceAccount"}: false,
	} {
		if got := e.NeedsBody(gk); got != want {
			t.Errorf("the body of %s is needed: %t", gk, got)
		}
	}
}

func TestExamine_ReportsErrors(t *testing.T) {
	e := examinerWith(t, resourcesv1alpha1.HealthCheck{Kind: "ConfigMap", Healthy: "object.data.mode == 'on'"})
	ready := &corev1.ConfigMap{Data: map[string]string{"mode": "on"}}
	if got := e.Examine(configMaps, ready); got != (Verdict{}) {
		t.Errorf("got %+v", got)
	}
	withStatus := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"a": "b"}}}
	if got := e.Examine(configMaps, withStatus); !strings.Contains(got.Err, "no such key: data") {
		t.Errorf("got %+v", got)
	}
}

// TestExaminerConcurrently sets checks, examines objects and queries kinds concurrently, for the race detector.
func TestExaminerConcurrently(t *testing.T) {
	e := examinerWith(t, saying(configMaps, "common"))
	var group sync.WaitGroup
	for worker := range 4 {
		origin := fmt.Sprint(worker)
		group.Go(func() {
			for round := range 20 {
				checks := []resourcesv1alpha1.HealthCheck{saying(configMaps, fmt.Sprint("own", round%2))}
				if _, err := e.SetOwn(origin, checks[:round%3%2]); err != nil {
					t.Error(err)
				}
			}
			e.Forget(origin)
		})
		group.Go(func() {
			for range 200 {
				if got := e.Examine(configMaps, &corev1.ConfigMap{ObjectMeta: owned(origin)}); got.Unhealthy == "" {
					t.Errorf("got %+v", got)
				}
				e.NeedsBody(widgets)
			}
		})
	}
	group.Wait()
	if len(e.own) != 0 || len(e.asked) != 0 {
		t.Errorf("unused entries remain: %v %v", e.own, e.asked)
	}
}

// TestChangedSince checks that verdicts from before or during a change of checks are detected.
func TestChangedSince(t *testing.T) {
	e := examinerWith(t)
	before := e.Epoch()
	setOwn(t, e, "shop", saying(configMaps, "a"))
	after := e.Epoch()
	setOwn(t, e, "bank", saying(configMaps, "b"))
	setOwn(t, e, "shop", saying(configMaps, "a"))
	for name, test := range map[string]struct {
		epoch  uint64
		origin string
		want   bool
	}{
		"before":                  {before, "shop", true},
		"after":                   {after, "shop", false},
		"before those of another": {after, "bank", true},
		"one without checks":      {before, "market", false},
	} {
		if got := e.ChangedSince(test.epoch, test.origin); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	last := e.Epoch()
	setOwn(t, e, "shop")
	if !e.ChangedSince(last, "shop") || e.ChangedSince(e.Epoch(), "shop") {
		t.Error("the removal of all checks does not count as a change")
	}
}
