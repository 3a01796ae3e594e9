package managedresource

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/ownership"
)

// predecessors returns the ManagedResources that must be deleted before a ManagedResource.
type predecessors func(types.NamespacedName) ([]types.NamespacedName, error)

// deletionOrder contains the reasons why the objects of a ManagedResource must not be deleted yet. The zero value means
// that there are none.
type deletionOrder struct {
	// waits are the ManagedResources that must be deleted first, sorted.
	waits []types.NamespacedName
	// cycles are the paths from the ManagedResource back to itself. The deletion does not wait for the ManagedResources on
	// them. Otherwise, all of them would wait forever.
	cycles [][]types.NamespacedName
}

// deletionOrderOf returns the deletion order of a ManagedResource.
func deletionOrderOf(self types.NamespacedName, before predecessors) (deletionOrder, error) {
	first, err := before(self)
	if err != nil {
		return deletionOrder{}, err
	}
	var order deletionOrder
	for _, name := range first {
		path, err := pathBack(self, name, []types.NamespacedName{self}, map[types.NamespacedName]bool{}, before)
		switch {
		case err != nil:
			return deletionOrder{}, err
		case path != nil:
			order.cycles = append(order.cycles, path)
		default:
			order.waits = append(order.waits, name)
		}
	}
	slices.SortFunc(order.waits, compareNames)
	slices.SortFunc(order.cycles, func(a, b []types.NamespacedName) int { return slices.CompareFunc(a, b, compareNames) })
	return order, nil
}

// pathBack returns the path from self through next back to self. It is nil if there is no such path.
func pathBack(self, next types.NamespacedName, path []types.NamespacedName, seen map[types.NamespacedName]bool, before predecessors,
) ([]types.NamespacedName, error) {
	path = append(slices.Clone(path), next)
	if next == self {
		return path, nil
	}
	if seen[next] {
		return nil, nil
	}
	seen[next] = true
	further, err := before(next)
	if err != nil {
		return nil, err
	}
	for _, name := range further {
		if found, err := pathBack(self, name, path, seen, before); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func compareNames(a, b types.NamespacedName) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

// verdict returns the content of ResourcesApplied while the deletion waits.
func (o deletionOrder) verdict() resourcesv1alpha1.Statement {
	items := make([]string, 0, len(o.waits))
	for _, name := range o.waits {
		items = append(items, "ManagedResource "+name.String())
	}
	message := section("Nothing is deleted until these are gone", items)
	if cycles := o.section(); cycles != "" {
		message += "\n" + cycles
	}
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDeletionWaits, message)
}

// section returns the text about the ManagedResources on cycles. It is empty if there are none.
func (o deletionOrder) section() string {
	items := make([]string, 0, len(o.cycles))
	for _, cycle := range o.cycles {
		items = append(items, joinNames(cycle))
	}
	return section("Not waited for, since these ManagedResources would wait for each other", items)
}

// awaitsOthers reports whether the deletion order matters. It does not if the class of the ManagedResource has changed,
// if it keeps its objects, or if its grace period has expired.
func awaitsOthers(mr *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	return mr.DeletionTimestamp != nil && !ptr.Deref(mr.Spec.KeepObjects, false) && !timeIsUp(mr, now)
}

// findDeletionOrder returns the deletion order of the ManagedResource of this pass.
func (p *pass) findDeletionOrder(ctx context.Context, owners *ownership.Reader) (deletionOrder, error) {
	if !awaitsOthers(p.mr, p.Clock.Now()) {
		return deletionOrder{}, nil
	}
	return deletionOrderOf(p.self.Owner, func(name types.NamespacedName) ([]types.NamespacedName, error) {
		return p.before(ctx, owners, name)
	})
}

// before returns the existing ManagedResources that must be deleted before a ManagedResource.
func (p *pass) before(ctx context.Context, owners *ownership.Reader, name types.NamespacedName) ([]types.NamespacedName, error) {
	mr := p.mr
	if name != p.self.Owner {
		other, err := owners.Other(ctx, name)
		if other == nil || err != nil {
			return nil, err
		}
		mr = other
	}
	named, set := mr.DeletedAfter()
	if !set {
		return p.dependents(ctx, name)
	}
	var existing []types.NamespacedName
	for _, name := range named {
		other, err := owners.Other(ctx, name)
		if err != nil {
			return nil, err
		}
		if other != nil || name == p.self.Owner {
			existing = append(existing, name)
		}
	}
	return existing, nil
}

// deletionNotes returns the texts about the deletion of all objects that the condition contains in addition to those
// about each object.
func (p *pass) deletionNotes(order deletionOrder) []string {
	notes := []string{order.section()}
	if _, err := finalizeAt(p.mr); err != nil {
		notes = append(notes, "The "+err.Error())
	}
	return notes
}

// awaitDeletions reports in the condition which ManagedResources must be deleted before the objects are deleted. The
// health conditions stay unchanged.
func (p *pass) awaitDeletions(ctx context.Context, order deletionOrder) (reconcile.Result, error) {
	status := *p.mr.Status.DeepCopy()
	status.ObservedGeneration = p.mr.Generation
	status.Conditions = p.conditions(status.Conditions, order.verdict())
	if !equality.Semantic.DeepEqual(status, p.mr.Status) {
		if err := p.storeStatus(ctx, status); err != nil {
			return reconcile.Result{}, err
		}
	}
	again := p.Options.SyncPeriod
	if due, _ := finalizeAt(p.mr); !due.IsZero() {
		again = min(again, max(due.Sub(p.Clock.Now()), 0)+dueMargin)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// deletedAfterNames returns the names in deleteAfter of a ManagedResource, for the index.
func deletedAfterNames(obj client.Object) []string {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	named, _ := mr.DeletedAfter()
	return namesOf(named)
}

// deletedAfter returns requests for the ManagedResources that are being deleted and may have waited for the given one,
// which was deleted or whose dependencies have changed.
func (r *Reconciler) deletedAfter(ctx context.Context, obj client.Object) []reconcile.Request {
	changed, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	naming, err := r.indexed(ctx, deleteAfterIndex, client.ObjectKeyFromObject(changed).String())
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the ManagedResources that are deleted after this one",
			"name", client.ObjectKeyFromObject(changed))
	}
	var requests []reconcile.Request
	for _, name := range slices.Concat(changed.Dependencies(), naming) {
		mr := &resourcesv1alpha1.ManagedResource{}
		if r.Source.Get(ctx, name, mr) == nil && mr.DeletionTimestamp != nil {
			requests = append(requests, reconcile.Request{NamespacedName: name})
		}
	}
	return requests
}

// mayEndDeletionWait selects changes that may end the wait of ManagedResources that are being deleted.
func mayEndDeletionWait() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isManagedResource := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			return ok && isManagedResource && !slices.Equal(before.Dependencies(), after.Dependencies())
		},
	}
}
