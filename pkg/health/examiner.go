package health

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
)

// Examiner computes the health of objects. It uses the check of the ManagedResource that owns the object, else the
// check in the configuration, else the built-in one. It is safe for concurrent use.
type Examiner struct {
	other  OtherKinds
	common *expression.Checks
	// epoch counts the changes of own.
	epoch atomic.Uint64

	mu sync.RWMutex
	// own holds the checks of ManagedResources, by the origin of their objects.
	own map[string]ownChecks
	// asked counts the ManagedResources that have a check for a kind.
	asked map[schema.GroupKind]int
}

// ownChecks are the checks of one ManagedResource, both as written and compiled.
type ownChecks struct {
	written  []resourcesv1alpha1.HealthCheck
	compiled *expression.Checks
	err      error
	// since is the epoch in which they were set.
	since uint64
}

// differsFrom returns the kinds whose checks differ from those before.
func (c ownChecks) differsFrom(before ownChecks) []schema.GroupKind {
	kinds := map[schema.GroupKind]bool{}
	for _, gk := range slices.Concat(before.compiled.Kinds(), c.compiled.Kinds()) {
		kinds[gk] = before.textFor(gk) != c.textFor(gk)
	}
	maps.DeleteFunc(kinds, func(_ schema.GroupKind, differs bool) bool { return !differs })
	return slices.Collect(maps.Keys(kinds))
}

// textFor returns the check of a kind as written. It is the zero value if there is no usable check.
func (c ownChecks) textFor(gk schema.GroupKind) resourcesv1alpha1.HealthCheck {
	for _, written := range c.written {
		if written.Group == gk.Group && written.Kind == gk.Kind && c.compiled.For(gk) != nil {
			return written
		}
	}
	return resourcesv1alpha1.HealthCheck{}
}

// NewExaminer returns an examiner with the checks of the configuration, which may be nil.
func NewExaminer(other OtherKinds, common *expression.Checks) *Examiner {
	return &Examiner{other: other, common: common, own: map[string]ownChecks{}, asked: map[schema.GroupKind]int{}}
}

// SetOwn sets the checks for the objects of an origin. It returns the kinds whose objects of this origin must be
// examined again. If a check does not compile, none of the checks applies, and SetOwn returns the same error each time.
func (e *Examiner) SetOwn(origin string, checks []resourcesv1alpha1.HealthCheck) ([]schema.GroupKind, error) {
	e.mu.RLock()
	before, known := e.own[origin]
	e.mu.RUnlock()
	if !known && len(checks) == 0 || known && slices.Equal(before.written, checks) {
		return nil, before.err
	}
	after := ownChecks{written: slices.Clone(checks)}
	after.compiled, after.err = expression.Compile(checks)

	e.mu.Lock()
	defer e.mu.Unlock()
	e.count(before, -1)
	e.count(after, 1)
	after.since = e.epoch.Add(1)
	e.own[origin] = after // also if the list is empty now: ChangedSince needs the epoch
	return after.differsFrom(before), after.err
}

// Forget drops the checks of an origin whose objects no longer exist.
func (e *Examiner) Forget(origin string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count(e.own[origin], -1)
	delete(e.own, origin)
}

// count adds a number to the counters of the kinds that have checks.
func (e *Examiner) count(checks ownChecks, number int) {
	for _, gk := range checks.compiled.Kinds() {
		if e.asked[gk] += number; e.asked[gk] == 0 {
			delete(e.asked, gk)
		}
	}
}

// Epoch returns the current epoch, to pass to ChangedSince later.
func (e *Examiner) Epoch() uint64 { return e.epoch.Load() }

// ChangedSince reports whether the checks for the objects of an origin changed after an epoch. Verdicts computed in
// that epoch may be outdated then.
func (e *Examiner) ChangedSince(epoch uint64, origin string) bool {
	if e.epoch.Load() == epoch {
		return false
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.own[origin].since > epoch
}

// NeedsBody reports whether checks of a kind read more than the metadata of objects.
func (e *Examiner) NeedsBody(gk schema.GroupKind) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return NeedsBody(gk, e.other) || e.common.For(gk) != nil || e.asked[gk] > 0
}

// Examine returns the verdict on an object, which must be complete.
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
