package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Emitter brings the live objects to the state that plans want.
type Emitter struct {
	// Reader may be a cache of ManagedResources and of the metadata of Secrets: see [IndexOwners].
	Reader client.Reader
	// Uncached reads from the API server.
	Uncached client.Reader
	// Writer writes to the API server.
	Writer client.Client
	// FieldManager is the field manager of the flow.
	FieldManager string
	Rules        Rules
	// Pacer delays code changes; nil to emit them immediately.
	Pacer *Pacer
	// Clock limits how long recent writes override a cache that does not show them yet; nil if Reader is not a cache.
	Clock clock.PassiveClock
	// Schema returns the schema of ManagedResources that the API server serves: see [ServedSchema]; nil to skip this
	// check.
	Schema func(context.Context) (*Schema, error)

	recent recent
}

// waitHold is the name of the wait that [Plan.Hold] adds.
const waitHold = "hold"

// Result is the outcome of an emission.
type Result struct {
	// Plan is the emitted plan, including the waits that the emission added.
	Plan Plan
	Decision
	Live Live
	// Written are the bundles that were written or deleted.
	Written []Key
}

// Settled reports whether an emission had nothing to do, or only what waits for its place in a rollout.
func (r Result) Settled() bool {
	waits := slices.ContainsFunc(r.Plan.Waits, func(wait Wait) bool { return wait.Name != WaitRollout })
	return len(r.Steps) == 0 && len(r.Problems) == 0 && len(r.Pending) == 0 && !waits
}

// Emit brings the live objects to the state that a plan wants. It sends no write requests if they match. It can be
// repeated at any time: steps completed before an error or a crash persist, and the next emission continues. The error
// joins the errors of all bundles. A failed bundle blocks only the bundles that depend on it.
func (e *Emitter) Emit(ctx context.Context, owner Owner, plan Plan) (result Result, err error) {
	defer func() { progress.observe(ctx, owner, result, err, e.now()) }()
	live, err := Observe(ctx, e.Reader, owner, plan)
	if err != nil {
		return Result{}, err
	}
	switch {
	case e.Clock == nil:
	case plan.Deleting: // a deleted ManagedResource must not appear to exist until its last write expires
		e.recent.forget(owner, e.Clock.Now())
	default:
		plan.Next = requeue.Earlier(plan.Next, e.recent.complete(owner, live, e.Clock.Now()))
	}
	if e.Schema != nil {
		schema, err := e.Schema(ctx)
		if err != nil {
			return Result{}, err
		}
		plan.Waits = append(plan.Waits, schema.waits(plan)...)
	}
	decision, err := Decide(owner, plan, live, e.Rules)
	if err != nil {
		return Result{}, err
	}
	if plan.Hold != "" {
		plan.Waits = append(plan.Waits, Wait{Name: waitHold, Reason: plan.Hold, HoldsAll: true, Repairs: repairs(owner, live, decision)})
		if decision, err = Decide(owner, plan, live, e.Rules); err != nil {
			return Result{}, err
		}
	}
	if e.Pacer != nil {
		wait, next, err := e.Pacer.hold(ctx, e.Reader, owner, plan, live, decision, e.Rules.Version)
		if err != nil {
			return Result{}, err
		}
		if wait != nil {
			plan.Waits = append(plan.Waits, *wait)
			plan.Next = requeue.Earlier(plan.Next, next)
			if decision, err = Decide(owner, plan, live, e.Rules); err != nil {
				return Result{}, err
			}
		}
	}
	if e.Clock != nil {
		plan.Next = requeue.Earlier(plan.Next, causesChangeAt(owner, live, e.Clock.Now()))
	}
	result = Result{Plan: plan, Decision: decision, Live: live}
	err = e.executeSteps(ctx, owner, &result)
	return result, err
}

// now returns the time of the emitter's clock, or of the system if it has none.
func (e *Emitter) now() time.Time {
	if e.Clock == nil {
		return time.Now()
	}
	return e.Clock.Now()
}

// executeSteps executes the steps of a decision. It skips a bundle if one of its dependencies could not be written.
func (e *Emitter) executeSteps(ctx context.Context, owner Owner, result *Result) error {
	var errs []error
	failed := map[Key]bool{}
	for _, step := range result.Steps {
		if step.revision != nil && dependsOnAny(step.revision.bundle, failed) {
			failed[step.Key] = true
			continue
		}
		if err := e.execute(ctx, owner, step); err != nil {
			failed[step.Key] = true
			errs = append(errs, fmt.Errorf("%s %s: %w", strings.ToLower(string(step.Action)), step.Key, err))
			continue
		}
		result.Written = append(result.Written, step.Key)
	}
	return errors.Join(errs...)
}

func dependsOnAny(bundle Bundle, failed map[Key]bool) bool {
	for _, key := range dependencies(bundle.Namespace, bundle.Spec) {
		if failed[key] {
			return true
		}
	}
	return false
}

func (e *Emitter) execute(ctx context.Context, owner Owner, step Step) error {
	switch step.Action {
	case ActionDelete:
		return e.remove(ctx, step)
	case ActionConfirm:
		return e.confirm(ctx, owner, step)
	case ActionRelease:
		return e.release(ctx, step)
	case ActionKeepObjects:
		return e.keepObjects(ctx, owner, step)
	case ActionHandOver:
		return e.handOver(ctx, owner, step)
	case ActionAdopt:
		if err := e.adopt(ctx, step); err != nil {
			return err
		}
	}
	secrets, mr, err := step.revision.render(owner, step.emission)
	if err != nil {
		return err
	}
	if err := e.createSecrets(ctx, secrets); err != nil {
		return err
	}
	mr.UID = step.uid
	return e.apply(ctx, owner, mr)
}

// apply sends a ManagedResource by server-side apply. An observed ManagedResource is applied with force, and its UID
// ensures that it is still the same object. A new one is applied without force, which fails if another writer has
// created it in the meantime.
func (e *Emitter) apply(ctx context.Context, owner Owner, mr *resourcesv1alpha1.ManagedResource) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mr)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	options := []client.ApplyOption{client.FieldOwner(e.FieldManager)}
	if mr.UID != "" {
		options = append(options, client.ForceOwnership)
	}
	if err := e.Writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return fmt.Errorf("apply ManagedResource %s: %w", keyOf(mr), err)
	}
	if e.Clock == nil {
		return nil
	}
	answer := &resourcesv1alpha1.ManagedResource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, answer); err != nil {
		return fmt.Errorf("read ManagedResource %s: %w", keyOf(mr), err)
	}
	e.recent.record(owner, answer, e.Clock.Now())
	return nil
}

// remove deletes the observed ManagedResource.
func (e *Emitter) remove(ctx context.Context, step Step) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = step.Key.Namespace, step.Key.Name
	preconditions := client.Preconditions{UID: &step.uid}
	if step.resourceVersion == "" {
		return client.IgnoreNotFound(e.Writer.Delete(ctx, mr, preconditions))
	}
	preconditions.ResourceVersion = &step.resourceVersion
	err := e.Writer.Delete(ctx, mr, preconditions)
	if apierrors.IsConflict(err) {
		return nil // a watch reports the change, and the next pass decides again
	}
	return client.IgnoreNotFound(err)
}
