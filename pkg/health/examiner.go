package health

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
)

// Examiner computes the health of objects: by the checks of the ManagedResource that owns them, by those of the configuration, or by
// the built-in ones, whichever comes first. It is safe for concurrent use.
type Examiner struct {
	other  OtherKinds
	common *expression.Checks

	mu sync.RWMutex
	// own are the checks of ManagedResources, by the origin of their objects.
	own map[string]ownChecks
	// asked counts the ManagedResources that have a check for a kind.
	asked map[schema.GroupKind]int
}

// ownChecks are the checks of one ManagedResource, as they were written and compiled.
type ownChecks struct {
	written  []resourcesv1alpha1.HealthCheck
	compiled *expression.Checks
	err      error
}

// NewExaminer returns an examiner with the checks of the configuration; nil is for none.
func NewExaminer(other OtherKinds, common *expression.Checks) *Examiner {
	return &Examiner{other: other, common: common, own: map[string]ownChecks{}, asked: map[schema.GroupKind]int{}}
}

// SetOwn sets the checks for the objects of an origin, and returns the kinds whose objects must be examined again because
// of that. The error says which checks cannot be compiled; then none of them holds, and the same error is returned every time.
func (e *Examiner) SetOwn(origin string, checks []resourcesv1alpha1.HealthCheck) ([]schema.GroupKind, error) {
	e.mu.RLock()
	before, known := e.own[origin]
	e.mu.RUnlock()
	if !known && len(checks) == 0 || known && reflect.DeepEqual(before.written, checks) {
		return nil, before.err
	}
	after := ownChecks{written: slices.Clone(checks)}
	after.compiled, after.err = expression.Compile(checks)

	e.mu.Lock()
	defer e.mu.Unlock()
	changed := map[schema.GroupKind]bool{}
	for _, gk := range before.compiled.Kinds() {
		changed[gk] = true
		if e.asked[gk]--; e.asked[gk] == 0 {
			delete(e.asked, gk)
		}
	}
	for _, gk := range after.compiled.Kinds() {
		changed[gk] = true
		e.asked[gk]++
	}
	e.own[origin] = after
	if len(checks) == 0 {
		delete(e.own, origin)
	}
	return slices.Collect(maps.Keys(changed)), after.err
}

// NeedsBody reports whether more than the metadata of a kind's objects has to be known.
func (e *Examiner) NeedsBody(gk schema.GroupKind) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return NeedsBody(gk, e.other) || e.common.For(gk) != nil || e.asked[gk] > 0
}

// Examine returns how a whole object is.
func (e *Examiner) Examine(gk schema.GroupKind, obj runtime.Object) Verdict {
	check := e.checkFor(gk, obj)
	if check == nil {
		return Check(obj, e.other)
	}
	content, err := contentOf(obj)
	if err != nil {
		return Verdict{Err: fmt.Sprintf("read the object: %v", err)}
	}
	verdict := check.Evaluate(context.Background(), content)
	return Verdict{Unhealthy: verdict.Unhealthy, Progressing: verdict.Progressing, Err: verdict.Err}
}

func (e *Examiner) checkFor(gk schema.GroupKind, obj runtime.Object) *expression.Check {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if accessor, err := meta.Accessor(obj); err == nil {
		if check := e.own[accessor.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]].compiled.For(gk); check != nil {
			return check
		}
	}
	return e.common.For(gk)
}

func contentOf(obj runtime.Object) (map[string]any, error) {
	if untyped, is := obj.(*unstructured.Unstructured); is {
		return untyped.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
