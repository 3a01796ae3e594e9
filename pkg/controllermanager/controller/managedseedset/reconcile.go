package managedseedset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// action of Events.
const actionReconcile = "Reconcile"

// errStale is returned if the cache does not have all Shoots of a set.
var errStale = errors.New("the cache does not have the same Shoots of the set as the API server; it is tried again")

// reconciler maintains the replicas of ManagedSeedSets.
type reconciler struct {
	controller.Protector

	clock      clock.PassiveClock
	maxRetries int
	period     time.Duration
}

// Reconcile carries out one decision about a set, and then writes its status.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &v1alpha1.ManagedSeedSet{}
	if err := r.Client.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read spec.selector of ManagedSeedSet %s: %w", request, err)
	}
	if set.DeletionTimestamp == nil {
		if err := r.Add(ctx, set, constants.GardenerName); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.decide(ctx, set, selector); err != nil {
		if !apierrors.IsConflict(err) && !errors.Is(err, errStale) {
			r.Recorder.Eventf(set, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", err)
		}
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.period}, nil
}

func (r *reconciler) decide(ctx context.Context, set *v1alpha1.ManagedSeedSet, selector labels.Selector) error {
	replicas, err := r.replicas(ctx, set, selector)
	if err != nil {
		return err
	}
	wanted := int(ptr.Deref(set.Spec.Replicas, 1))
	if set.DeletionTimestamp != nil {
		wanted = 0
	}
	decision := Decide(Inputs{
		Set: set.Name, Wanted: wanted, Replicas: replicas, Pending: set.Status.PendingReplica,
		Next: int(set.Status.NextReplicaNumber), MaxRetries: r.maxRetries,
	})
	if decision.Action != Nothing {
		if err := r.carryOut(ctx, set, selector, len(replicas), decision); err != nil {
			return fmt.Errorf("%s of replica %s of ManagedSeedSet %s: %w", decision.Action, decision.Replica, set.Name, err)
		}
	}
	status := statusAfter(set, replicas, decision, r.clock.Now())
	if decision.Blocked != "" || decision.Replica != "" && !equality.Semantic.DeepEqual(status.PendingReplica, set.Status.PendingReplica) {
		r.notify(set, eventOf(decision))
	}
	if err := r.writeStatus(ctx, set, status); err != nil {
		return err
	}
	if set.DeletionTimestamp == nil || len(replicas) > 0 {
		return nil
	}
	return r.Release(ctx, set, constants.GardenerName, func(ctx context.Context, reader client.Reader) ([]string, error) {
		names, err := shootsOf(ctx, reader, set, selector)
		return sets.List(names), err
	})
}

func (r *reconciler) notify(set *v1alpha1.ManagedSeedSet, event notice) {
	kind := corev1.EventTypeNormal
	if event.warning {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(set, nil, kind, event.reason, actionReconcile, "%s", event.note)
}

// replicas returns the replicas of a set, from the cache.
func (r *reconciler) replicas(ctx context.Context, set *v1alpha1.ManagedSeedSet, selector labels.Selector) ([]Replica, error) {
	var shoots gardencorev1beta1.ShootList
	if err := r.Client.List(ctx, &shoots, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Shoots of ManagedSeedSet %s: %w", set.Name, err)
	}
	hosts := map[string]bool{}
	for i := range shoots.Items {
		hosts[ptr.Deref(shoots.Items[i].Spec.SeedName, "")], hosts[ptr.Deref(shoots.Items[i].Status.SeedName, "")] = true, true
	}
	var found []Replica
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		if !belongs(shoot, set, selector) {
			continue
		}
		managed, seed := &v1alpha1.ManagedSeed{}, &gardencorev1beta1.Seed{}
		var err error
		if managed, err = ifExists(ctx, r.Client, client.ObjectKeyFromObject(shoot), managed); err != nil {
			return nil, fmt.Errorf("read ManagedSeed %s: %w", shoot.Name, err)
		}
		if seed, err = ifExists(ctx, r.Client, client.ObjectKey{Name: shoot.Name}, seed); err != nil {
			return nil, fmt.Errorf("read Seed %s: %w", shoot.Name, err)
		}
		found = append(found, ReplicaOf(shoot, managed, seed, hosts[shoot.Name]))
	}
	return found, nil
}

// ifExists reads an object; nil if it does not exist.
func ifExists[T any, P interface {
	*T
	client.Object
}](ctx context.Context, reader client.Reader, key client.ObjectKey, object P) (P, error) {
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// belongs reports whether an object is one of a set. Objects of others do not, even if they have the labels.
func belongs(object client.Object, set *v1alpha1.ManagedSeedSet, selector labels.Selector) bool {
	return object.GetNamespace() == set.Namespace && metav1.IsControlledBy(object, set) && selector.Matches(labels.Set(object.GetLabels()))
}

// shootsOf returns the names of the Shoots of a set.
func shootsOf(ctx context.Context, reader client.Reader, set *v1alpha1.ManagedSeedSet, selector labels.Selector) (sets.Set[string], error) {
	var shoots gardencorev1beta1.ShootList
	if err := reader.List(ctx, &shoots, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the Shoots of ManagedSeedSet %s: %w", set.Name, err)
	}
	names := sets.New[string]()
	for i := range shoots.Items {
		if belongs(&shoots.Items[i], set, selector) {
			names.Insert(shoots.Items[i].Name)
		}
	}
	return names, nil
}

// carryOut carries out a decision. Before it creates or deletes something, it reads from the API server what a cache may not have yet.
func (r *reconciler) carryOut(ctx context.Context, set *v1alpha1.ManagedSeedSet, selector labels.Selector, known int, decision Decision) error {
	key := client.ObjectKey{Namespace: set.Namespace, Name: decision.Replica}
	if decision.Action != RetryShoot {
		names, err := shootsOf(ctx, r.Uncached, set, selector)
		if err != nil {
			return err
		}
		if len(names) != known {
			return errStale
		}
	}
	switch decision.Action {
	case CreateShoot:
		return r.Client.Create(ctx, newShoot(set, decision.Replica), controller.FieldManager)
	case CreateManagedSeed:
		managed, err := newManagedSeed(set, decision.Replica)
		if err != nil {
			return err
		}
		return r.Client.Create(ctx, managed, controller.FieldManager)
	case RetryShoot:
		return r.retry(ctx, key)
	case DeleteManagedSeed:
		managed, err := ifExists(ctx, r.Uncached, key, &v1alpha1.ManagedSeed{})
		if err != nil || managed == nil {
			return err
		}
		return r.delete(ctx, managed, set)
	case DeleteShoot:
		managed, err := ifExists(ctx, r.Uncached, key, &v1alpha1.ManagedSeed{})
		if err != nil {
			return err
		}
		if managed != nil {
			return errStale
		}
		return r.deleteShoot(ctx, key, set)
	case Nothing:
	}
	return nil
}

// deleteShoot confirms the deletion of a Shoot, and deletes it.
func (r *reconciler) deleteShoot(ctx context.Context, key client.ObjectKey, set *v1alpha1.ManagedSeedSet) error {
	shoot, err := ifExists(ctx, r.Uncached, key, &gardencorev1beta1.Shoot{})
	if err != nil || shoot == nil {
		return err
	}
	if shoot.Annotations[constants.AnnotationProtectFromDeletion] == "true" {
		return errStale
	}
	if err := r.annotate(ctx, shoot, constants.AnnotationConfirmationDeletion, "true"); err != nil {
		return err
	}
	return r.delete(ctx, shoot, set)
}

// delete deletes an object of a set, unless it is being deleted.
func (r *reconciler) delete(ctx context.Context, object client.Object, set *v1alpha1.ManagedSeedSet) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	if !metav1.IsControlledBy(object, set) {
		return fmt.Errorf("%s does not belong to the set", object.GetName())
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())}))
}

// retry retries the failed operation of a Shoot.
func (r *reconciler) retry(ctx context.Context, key client.ObjectKey) error {
	shoot, err := ifExists(ctx, r.Client, key, &gardencorev1beta1.Shoot{})
	if err != nil {
		return err
	}
	if shoot == nil || stateOfShoot(shoot) != ShootReconcileFailed && stateOfShoot(shoot) != ShootDeleteFailed {
		return errStale
	}
	return r.annotate(ctx, shoot, constants.AnnotationGardenerOperation, constants.OperationRetry)
}

// annotate sets an annotation of a Shoot, unless it has changed since it was read.
func (r *reconciler) annotate(ctx context.Context, read *gardencorev1beta1.Shoot, annotation, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": read.UID, "resourceVersion": read.ResourceVersion, "annotations": map[string]string{annotation: value},
	}})
	if err != nil {
		return fmt.Errorf("encode an annotation: %w", err)
	}
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: read.Namespace, Name: read.Name}}
	return client.IgnoreNotFound(r.Client.Patch(ctx, shoot, client.RawPatch(types.MergePatchType, patch), controller.FieldManager))
}

// writeStatus writes the status if it has changed.
func (r *reconciler) writeStatus(ctx context.Context, set *v1alpha1.ManagedSeedSet, status v1alpha1.ManagedSeedSetStatus) error {
	if equality.Semantic.DeepEqual(set.Status, status) {
		return nil
	}
	before := set.DeepCopy()
	set.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Status().Patch(ctx, set, patch, controller.FieldManager)); err != nil {
		return fmt.Errorf("write the status of ManagedSeedSet %s: %w", set.Name, err)
	}
	return nil
}
