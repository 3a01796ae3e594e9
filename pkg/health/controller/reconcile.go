// Package controller maintains the conditions ResourcesHealthy and ResourcesProgressing of ManagedResources, based on
// the live view of their objects.
package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/resting"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	// outdatedInterval is when a ManagedResource is reconciled again after an outdated version was read.
	outdatedInterval = 200 * time.Millisecond
	// busyInterval is when a ManagedResource is reconciled again whose objects are being changed or are not watched yet.
	busyInterval = time.Second
	// unobservedFor is how long the controller of an object may take to observe a change before the object counts as
	// unhealthy.
	unobservedFor = 30 * time.Second
)

// Options are the settings of the controller.
type Options struct {
	// Class and ClusterID are those of the controller of ManagedResources.
	Class, ClusterID string
	// Namespaces are the namespaces of the source cluster that the cache holds; empty for all.
	Namespaces []string
	// SyncPeriod is how often a ManagedResource is reconciled without an event.
	SyncPeriod time.Duration
	// ConcurrentSyncs is the number of ManagedResources that are reconciled concurrently.
	ConcurrentSyncs int
	// ProgressingThreshold is how long a rollout may take before it counts as stuck; 0 means no limit.
	ProgressingThreshold time.Duration
}

// Reconciler maintains the health conditions.
type Reconciler struct {
	// Source reads ManagedResources from a cache and writes them.
	Source client.Client
	// Live provides the objects and their health.
	Live *live.View
	// Objects reads Events of the target cluster.
	Objects *target.Objects
	// Recorder writes Events on ManagedResources.
	Recorder events.EventRecorder
	// Metrics may be nil.
	Metrics *Metrics
	Clock   clock.Clock
	Options Options

	memories *memories
	// resting are the ManagedResources whose result can change only after an event.
	resting *resting.Set
	// seeding guards seeded, which is set once the checks of all ManagedResources at startup are adopted.
	seeding *sync.Mutex
	seeded  bool
}

// NewReconciler completes a reconciler whose exported fields are set.
func NewReconciler(r Reconciler) *Reconciler {
	r.memories, r.seeding, r.resting = newMemories(), &sync.Mutex{}, resting.NewSet()
	return &r
}

// Reconcile updates the health conditions of one ManagedResource. It returns an error only if a retry can help.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.resting.Remove(request.NamespacedName)
	mr := &resourcesv1alpha1.ManagedResource{}
	err := r.Source.Get(ctx, request.NamespacedName, mr)
	if apierrors.IsNotFound(err) {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read ManagedResource %s: %w", request, err)
	}
	if !r.shouldCheck(mr) {
		r.memories.pause(request.NamespacedName)
		r.Metrics.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if !r.observable(mr) {
		return reconcile.Result{RequeueAfter: busyInterval}, nil
	}
	if err := r.seedChecks(ctx); err != nil {
		return reconcile.Result{}, err
	}
	checksErr := r.adoptChecks(ctx, mr)
	memory := r.memories.of(request.NamespacedName)
	changedAt := r.memories.takeChange(request.NamespacedName) // before the objects are read: later changes enqueue another reconcile
	if changedAt.IsZero() && memory.rests == mr.ResourceVersion && r.Live.Watching() {
		r.resting.Add(request.NamespacedName, mr.ResourceVersion)
		return reconcile.Result{}, nil
	}
	subjects, watched := r.subjectsOf(ctx, mr)
	nextEvents := r.explain(ctx, mr, memory, subjects)
	healthy, progressing, settled := r.judge(mr, memory, subjects, checksErr)
	due := soonest(nextEvents, settled, r.untilStuck(progressing, mr))
	result := reconcile.Result{RequeueAfter: soonest(r.Options.SyncPeriod, due)}
	written, err := r.store(ctx, mr, healthy, progressing, r.foundUnhealthy(ctx, mr, memory.found, healthy), changedAt)
	memory.rests = ""
	if err == nil && !written && watched && due == 0 { // a change that is due later would be missed
		memory.rests = mr.ResourceVersion
		r.resting.Add(request.NamespacedName, mr.ResourceVersion)
		result = reconcile.Result{}
	}
	if client.IgnoreNotFound(err) == nil {
		return result, nil
	}
	r.memories.restoreChange(request.NamespacedName, changedAt)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil // by then the cache has the current state
	}
	return reconcile.Result{}, err
}

// shouldCheck reports whether to check the objects of a ManagedResource. They are not checked before the first ones
// were applied, while they are being deleted, or if the ManagedResource has the ignore annotation (as in
// gardener-resource-manager).
func (r *Reconciler) shouldCheck(mr *resourcesv1alpha1.ManagedResource) bool {
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	waits := applied.Reason == resourcesv1alpha1.ReasonDependencyNotReady || applied.Reason == resourcesv1alpha1.ReasonDependencyCycle
	return mr.DeletionTimestamp == nil && (!waits || len(mr.Status.Resources) > 0) &&
		resourcesv1alpha1.HasClass(mr, r.Options.Class) && !resourcesv1alpha1.HeldByOther(mr, r.Options.Class) &&
		!resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) &&
		applied.Reason != "" && applied.Reason != resourcesv1alpha1.ReasonApplyProgressing
}

// observable reports whether the live view covers the objects of a ManagedResource, and they are not being changed.
func (r *Reconciler) observable(mr *resourcesv1alpha1.ManagedResource) bool {
	return !r.Live.HealthSuspended(r.originOf(client.ObjectKeyFromObject(mr))) &&
		(len(mr.Status.Resources) == 0 || r.Live.InUse(client.ObjectKeyFromObject(mr)))
}

func (r *Reconciler) originOf(owner types.NamespacedName) string {
	return resourcesv1alpha1.Origin{ClusterID: r.Options.ClusterID, Owner: owner}.String()
}

// seedChecks adopts the checks of all ManagedResources at once, so that their kinds are listed again only once, not
// once per ManagedResource.
func (r *Reconciler) seedChecks(ctx context.Context) error {
	r.seeding.Lock()
	defer r.seeding.Unlock()
	if r.seeded {
		return nil
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.Source.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ManagedResources: %w", err)
	}
	var all []live.Checks
	for i := range list.Items {
		if mr := &list.Items[i]; r.shouldCheck(mr) {
			all = append(all, live.ChecksOf(r.originOf(client.ObjectKeyFromObject(mr)), mr))
		}
	}
	r.Live.AdoptChecks(ctx, all...)
	r.seeded = true
	return nil
}

// adoptChecks makes the live view use the checks of the ManagedResource. It returns an error if the checks are invalid.
func (r *Reconciler) adoptChecks(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	origin := r.originOf(client.ObjectKeyFromObject(mr))
	r.Live.AdoptChecks(ctx, live.ChecksOf(origin, mr))
	_, err := r.Live.AdoptedChecks(origin)
	return err
}

// subjectsOf returns the objects in the inventory as the live view has them, and whether it watches all of them. It
// fetches objects that are not in the view, because they may have lost their label.
func (r *Reconciler) subjectsOf(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (_ []health.Subject, watched bool) {
	refs, completed := make([]object.Ref, 0, len(mr.Status.Resources)), map[object.Key]bool{}
	for _, entry := range mr.Status.Resources {
		ref := object.Ref{
			GroupVersionKind: schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind), Namespace: entry.Namespace, Name: entry.Name,
		}
		refs, completed[ref.Key()] = append(refs, ref), entry.Completed
	}
	states := r.Live.Read(ctx, refs)
	refs = slices.DeleteFunc(refs, func(ref object.Ref) bool { // the TTL of a finished Job has deleted it
		state := states[ref.Key()]
		return state.Presence == live.Absent && (state.Finished || completed[ref.Key()])
	})
	var absent []object.Ref
	for _, ref := range refs {
		if states[ref.Key()].Presence == live.Absent {
			absent = append(absent, ref)
		}
	}
	for key, state := range r.Live.Fetch(ctx, absent) {
		states[key] = state
	}
	watched = !slices.ContainsFunc(refs, func(ref object.Ref) bool { return !r.Live.Watches(ref) })
	return live.Subjects(refs, states), watched
}

// judge returns the conditions, and how soon they may have to change.
func (r *Reconciler) judge(mr *resourcesv1alpha1.ManagedResource, memory *memory, subjects []health.Subject, checksErr error,
) (healthy, progressing resourcesv1alpha1.Statement, again time.Duration) {
	now := r.Clock.Now()
	wasHealthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	wasProgressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	rolling := memory.rollout.Rolling(wasProgressing, subjects, now)

	progressing, again = memory.progressing.Settle(wasProgressing, health.Progressing(subjects), rolling, now)
	found, overdue := memory.observe(wasHealthy, subjects, now)
	if stuck := r.stuck(wasProgressing, progressing, now); stuck != nil && found.Status == resourcesv1alpha1.ConditionTrue {
		found, rolling = *stuck, false
	}
	if checksErr != nil {
		found, rolling = resourcesv1alpha1.Statement{
			Status: resourcesv1alpha1.ConditionFalse, Reason: resourcesv1alpha1.ReasonHealthCheckError,
			Message: conditiontext.ForCondition("The health checks of the ManagedResource cannot be used: " + checksErr.Error()),
		}, false
	}
	memory.found = found
	healthy, later := memory.healthy.Settle(wasHealthy, found, rolling, now)
	return healthy, progressing, soonest(again, later, overdue)
}

// stuck returns the statement for ResourcesHealthy if a rollout takes longer than allowed; nil if it does not.
func (r *Reconciler) stuck(
	before resourcesv1alpha1.Condition, progressing resourcesv1alpha1.Statement, now time.Time,
) *resourcesv1alpha1.Statement {
	since := now.Sub(before.LastTransitionTime.Time)
	if r.Options.ProgressingThreshold <= 0 || before.Status != resourcesv1alpha1.ConditionTrue ||
		progressing.Status != resourcesv1alpha1.ConditionTrue || since < r.Options.ProgressingThreshold {
		return nil
	}
	return &resourcesv1alpha1.Statement{
		Status: resourcesv1alpha1.ConditionFalse, Reason: resourcesv1alpha1.ReasonRolloutStuck,
		Message: conditiontext.ForCondition(
			fmt.Sprintf("The rollout takes longer than %s: %s", r.Options.ProgressingThreshold, progressing.Message)),
	}
}

// untilStuck returns how soon the current rollout will count as stuck; 0 if there is none, or it already counts as
// stuck.
func (r *Reconciler) untilStuck(progressing resourcesv1alpha1.Statement, mr *resourcesv1alpha1.ManagedResource) time.Duration {
	if r.Options.ProgressingThreshold <= 0 || progressing.Status != resourcesv1alpha1.ConditionTrue {
		return 0
	}
	since := r.Clock.Now()
	before := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	if before.Status == progressing.Status {
		since = before.LastTransitionTime.Time
	}
	left := r.Options.ProgressingThreshold - r.Clock.Since(since)
	if left <= 0 {
		return 0
	}
	return left + time.Second // times in conditions have a precision of one second
}

// store writes the conditions if they differ, and reports whether they did. It fails with a conflict if the
// ManagedResource has changed since it was read.
func (r *Reconciler) store(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, healthy, progressing resourcesv1alpha1.Statement,
	foundUnhealthy string, changedAt time.Time,
) (written bool, err error) {
	now := r.Clock.Now()
	conditions := resourcesv1alpha1.SetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy, healthy, now)
	conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesProgressing, progressing, now)
	conditions = resourcesv1alpha1.SetReady(conditions, now)
	written = !equality.Semantic.DeepEqual(conditions, mr.Status.Conditions) || foundUnhealthy != mr.Status.FoundUnhealthy
	if written {
		if err := r.patch(ctx, mr, conditions, foundUnhealthy); err != nil {
			return true, err
		}
		r.emitEvents(mr, healthy)
	}
	r.Metrics.concluded(client.ObjectKeyFromObject(mr), healthy.Status, progressing.Status, changedAt, now)
	return written, nil
}

func (r *Reconciler) patch(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, conditions []resourcesv1alpha1.Condition,
	foundUnhealthy string,
) error {
	owned := slices.DeleteFunc(slices.Clone(conditions), func(c resourcesv1alpha1.Condition) bool {
		return c.Type != resourcesv1alpha1.ResourcesHealthy && c.Type != resourcesv1alpha1.ResourcesProgressing &&
			c.Type != resourcesv1alpha1.Ready
	})
	status := map[string]any{"conditions": owned}
	if foundUnhealthy != "" {
		status["foundUnhealthy"] = foundUnhealthy
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": resourcesv1alpha1.SchemeGroupVersion.String(), "kind": "ManagedResource",
		"metadata": map[string]string{
			"namespace": mr.Namespace, "name": mr.Name, "uid": string(mr.UID), "resourceVersion": mr.ResourceVersion,
		},
		"status": status,
	})
	if err != nil {
		return fmt.Errorf("encode the conditions of ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
	}
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
	meta.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	err = r.Source.Status().Patch(ctx, meta, client.RawPatch(types.ApplyPatchType, body),
		client.FieldOwner(resourcesv1alpha1.HealthFieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the conditions of ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
	}
	return nil
}

// forget drops the state of a ManagedResource that no longer exists.
func (r *Reconciler) forget(owner types.NamespacedName) {
	r.Live.ForgetChecks(r.originOf(owner))
	r.memories.forget(owner)
	r.Metrics.forget(owner)
}

// soonest returns the shortest of the durations that are not 0.
func soonest(durations ...time.Duration) time.Duration {
	var shortest time.Duration
	for _, duration := range durations {
		if duration > 0 && (shortest == 0 || duration < shortest) {
			shortest = duration
		}
	}
	return shortest
}
