package etcd

import (
	"context"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// fieldManager is the field manager of the operator.
const fieldManager = "etcd-operator"

// Options of the operator.
type Options struct {
	// Class is the class of the resource-manager, and MemberImage the image of members.
	Class, MemberImage string
	// Version of the program.
	Version string
	// AutoReconcile applies each change of a spec immediately.
	AutoReconcile bool
	// Workers is the number of Etcds that are reconciled concurrently.
	Workers int
	Clock   clock.PassiveClock
}

// Reconciler runs the flow for one Etcd at a time.
type Reconciler struct {
	Client   client.Client
	Uncached client.Reader
	Emitter  *flow.Emitter
	Runner   *flow.Runner
	Ledgers  *flow.Ledgers
	Recorder events.EventRecorder
	Options  Options
}

// CacheOptions restrict the cache of the operator to the objects that flows emit for Etcds, the objects that belong to
// Etcds, and the CustomResourceDefinition of ManagedResources.
func CacheOptions() map[client.Object]cache.ByObject {
	emitted, err := labels.NewRequirement(flow.LabelFlow, selection.In, []string{FlowName, FlowNameCopy})
	if err != nil {
		panic(err) // the names of the flows are not valid as labels
	}
	ours := labels.SelectorFromSet(labels.Set{lease.LabelManagedBy: lease.ManagedBy})
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:        {Label: labels.NewSelector().Add(*emitted)},
		&coordinationv1.Lease{}: {Label: ours},
		&batchv1.Job{}:          {Label: ours},
		&appsv1.StatefulSet{}:   {Label: ours},
		&apiextensionsv1.CustomResourceDefinition{}: {
			Field: fields.OneTermEqualSelector("metadata.name", "managedresources."+resourcesv1alpha1.SchemeGroupVersion.Group),
		},
	}
}

// New returns the reconciler of a manager.
func New(ctx context.Context, mgr ctrl.Manager, recorder events.EventRecorder, options Options) (*Reconciler, error) {
	reader, err := flow.IndexOwners(ctx, mgr.GetCache())
	if err != nil {
		return nil, err
	}
	r := &Reconciler{Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Recorder: recorder, Options: options}
	r.Emitter = &flow.Emitter{
		Reader: reader, Uncached: r.Uncached, Writer: r.Client, FieldManager: fieldManager, Clock: options.Clock,
		Rules:  flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: options.Version},
		Schema: func(ctx context.Context) (*flow.Schema, error) { return flow.ServedSchema(ctx, reader) },
	}
	r.Ledgers = &flow.Ledgers{Cached: r.Client, Uncached: r.Uncached, Local: true}
	r.Runner = &flow.Runner{Writer: r.Client, Clock: options.Clock, Acts: map[string]flow.Act{
		TaskDefragment: {Ready: r.mayDefragment, Run: r.defragment},
	}}
	return r, nil
}

// AddToManager adds watches for all inputs of the flow. Time-based changes are scheduled by Plan.Next.
func (r *Reconciler) AddToManager(mgr ctrl.Manager) error {
	toEtcd := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[lease.LabelPartOf]}
		return []reconcile.Request{{NamespacedName: key}}
	})
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).Named(FlowName).
		For(&druidv1alpha1.Etcd{}, builder.WithPredicates(changed)).
		Watches(&resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), builder.WithPredicates(flow.EmittedBy(FlowName))).
		Watches(&corev1.Secret{}, flow.ToOwner(), builder.OnlyMetadata, builder.WithPredicates(flow.EmittedBy(FlowName))).
		Watches(&appsv1.StatefulSet{}, toEtcd).
		Watches(&batchv1.Job{}, toEtcd, builder.WithPredicates(component(componentCompaction))).
		Watches(&coordinationv1.Lease{}, toEtcd, builder.WithPredicates(predicate.Funcs{UpdateFunc: leaseChanged})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.Workers, RateLimiter: requeue.Backoff()}).
		Complete(r)
	if err != nil {
		return err
	}
	return (&copies{r}).addToManager(mgr)
}

// component passes the objects of a component.
func component(name string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[lease.LabelComponent] == name })
}

// leaseChanged reports whether the content of a Lease has changed. The renewal of a Lease that was not expired does not
// count, because members renew their Leases every few seconds.
func leaseChanged(update event.UpdateEvent) bool {
	before, wasLease := update.ObjectOld.(*coordinationv1.Lease)
	after, isLease := update.ObjectNew.(*coordinationv1.Lease)
	if !wasLease || !isLease {
		return true
	}
	if after.Labels[lease.LabelComponent] == lease.ComponentSnapshot {
		return lease.ReadSnapshot(before) != lease.ReadSnapshot(after)
	}
	old, now := lease.Read(before), lease.Read(after)
	if now.Renewed.Sub(old.Renewed) < unknownAfter {
		old.Renewed = now.Renewed
	}
	return !reflect.DeepEqual(old, now)
}
