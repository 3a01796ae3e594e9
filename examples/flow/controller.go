package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	// Finalizer keeps the ConfigMap of a site until all of the site is gone.
	Finalizer = "sites.example.org/flow"
	// AnnotationReport on the ConfigMap of a site has its progress, a flow.Report as JSON.
	AnnotationReport = "sites.example.org/report"
	// AnnotationObserved on the ConfigMap of a site says which declaration the report is about, as status.observedGeneration does for kinds
	// that have a status: see [Declaration].
	AnnotationObserved = "sites.example.org/observed"
	fieldManager       = "sites-flow"
)

// NetworkKind is the kind of extension object that a site needs.
var NetworkKind = schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: "Infrastructure"}

// Declaration returns the digest of what is declared for a site.
func Declaration(site *corev1.ConfigMap) (string, error) { return flow.InputsDigest(site.Data) }

// CacheOptions restrict what the flow's process caches to what its plans and emissions read.
func CacheOptions() map[client.Object]cache.ByObject {
	options := flow.CacheOptions(FlowName)
	options[&corev1.ConfigMap{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{LabelSite: "true"})}
	return options
}

// Options of the flow's process.
type Options struct {
	// Class is that of the resource-manager.
	Class string
	// Version of the program.
	Version string
	// Pacing is how fast changes of the program are rolled out.
	Pacing flow.Pacing
	// Workers is how many sites are looked at at a time; 0 stands for 1.
	Workers int
	Clock   clock.PassiveClock
}

// DefaultPacing returns what suits a flow whose bundles are small.
func DefaultPacing() flow.Pacing {
	return flow.Pacing{Budget: 20, MaxFailed: 3, Retry: 5 * time.Minute}
}

// Reconciler runs the flow for one site at a time.
type Reconciler struct {
	Client   client.Client
	Uncached client.Reader
	Emitter  *flow.Emitter
	Runner   *flow.Runner
	Ledgers  *flow.Ledgers
	Options  Options
}

// New returns the reconciler of a manager.
func New(ctx context.Context, mgr ctrl.Manager, options Options) (*Reconciler, error) {
	reader, err := flow.IndexOwners(ctx, mgr.GetCache())
	if err != nil {
		return nil, err
	}
	r := &Reconciler{Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Options: options}
	r.Emitter = &flow.Emitter{
		Reader: reader, Uncached: r.Uncached, Writer: r.Client, FieldManager: fieldManager,
		Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: options.Version},
		Pacer: &flow.Pacer{Pacing: options.Pacing, Clock: options.Clock}, Clock: options.Clock,
		Schema: func(ctx context.Context) (*flow.Schema, error) { return flow.ServedSchema(ctx, reader) },
	}
	r.Ledgers = &flow.Ledgers{Cached: reader, Uncached: r.Uncached}
	r.Runner = &flow.Runner{Writer: r.Client, Clock: options.Clock, Acts: map[string]flow.Act{TaskDrain: {Run: r.drain}}}
	return r, nil
}

// AddToManager adds the watches. All that the function reads is watched; what has to happen at a time is in Plan.Next.
func (r *Reconciler) AddToManager(mgr ctrl.Manager) error {
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(NetworkKind)
	toOwner := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if owner, known := flow.ParseOwner(object.GetAnnotations()[flow.AnnotationOwner]); known {
			return []reconcile.Request{{NamespacedName: owner}}
		}
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named(FlowName).
		For(&corev1.ConfigMap{}).
		Watches(&resourcesv1alpha1.ManagedResource{}, toOwner).
		Watches(&corev1.Secret{}, toOwner, builder.OnlyMetadata).
		Watches(network, toOwner).
		WatchesRawSource(r.Emitter.Pacer.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.Workers}).
		Complete(r)
}

// Reconcile makes a plan and emits it. Each step leaves all as it is if nothing has to be done.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var site corev1.ConfigMap
	if err := r.Client.Get(ctx, request.NamespacedName, &site); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp == nil && !controllerutil.ContainsFinalizer(&site, Finalizer) {
		// The watch shows the change, and the next pass goes on.
		return reconcile.Result{}, r.patch(ctx, &site, func() { controllerutil.AddFinalizer(&site, Finalizer) })
	}
	if !controllerutil.ContainsFinalizer(&site, Finalizer) {
		return reconcile.Result{}, nil
	}
	inputs, err := r.observe(ctx, &site)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan, err := Plan(inputs)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, emitErr := r.Emitter.Emit(ctx, inputs.Owner, plan)
	if emitErr != nil && result.Live.ManagedResources == nil {
		return reconcile.Result{}, emitErr
	}
	pause, err := r.report(ctx, &site, inputs, result)
	if err := errors.Join(emitErr, err); err != nil {
		return reconcile.Result{}, err
	}
	if inputs.Deleting {
		return r.finish(ctx, &site, inputs, plan, pause)
	}
	return after(pause, result.Plan.NextAt(inputs.Now), inputs.Now), nil
}

// after returns to run again after a pause, or at a time if that is earlier. Zero stands for never.
func after(pause time.Duration, next, now time.Time) reconcile.Result {
	if !next.IsZero() && (pause == 0 || next.Sub(now) < pause) {
		pause = next.Sub(now)
	}
	return reconcile.Result{RequeueAfter: pause}
}

// observe reads the inputs of the plan.
func (r *Reconciler) observe(ctx context.Context, site *corev1.ConfigMap) (Inputs, error) {
	in := Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: site.UID, Namespace: site.Namespace, Name: site.Name},
		Class: r.Options.Class, Version: r.Options.Version, Declared: site.Data, Deleting: site.DeletionTimestamp != nil, Now: r.Options.Clock.Now(),
	}
	var err error
	if in.Emitted, err = flow.Emitted(ctx, r.Emitter.Reader, in.Owner); err != nil {
		return in, err
	}
	if in.Deleting {
		in.Ledger, err = r.Ledgers.Read(ctx, in.ledger())
		return in, err
	}
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(NetworkKind)
	// Clients read untyped objects from the API server unless they are configured otherwise: this is read from the cache.
	if err := r.Emitter.Reader.Get(ctx, client.ObjectKeyFromObject(site), network); err == nil {
		in.Network = network
	} else if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("read the network of site %s: %w", in.Owner, err)
	}
	var mr resourcesv1alpha1.ManagedResource
	key := in.bundle("network").Key
	err = r.Emitter.Reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &mr, client.UnsafeDisableDeepCopy)
	in.NetworkSince = mr.CreationTimestamp.Time
	return in, client.IgnoreNotFound(err)
}

func (in Inputs) ledger() flow.Key {
	return flow.Key{Namespace: in.Owner.Namespace, Name: in.Owner.Name + "-ledger"}
}

// report writes the progress, if it has changed, and returns how long it may wait with that; 0 if nothing is left to write.
func (r *Reconciler) report(ctx context.Context, site *corev1.ConfigMap, in Inputs, result flow.Result) (pause time.Duration, err error) {
	operation := flow.Operation{Name: "Reconciliation of the site", Type: corev1beta1.LastOperationTypeReconcile}
	if in.Deleting {
		operation.Name, operation.Type = "Deletion of the site", corev1beta1.LastOperationTypeDelete
	}
	if text := site.Annotations[AnnotationReport]; text != "" {
		if err := json.Unmarshal([]byte(text), &operation.Before); err != nil {
			operation.Before = flow.Report{} // the progress was edited: it is written again
		}
	}
	report := flow.Progress(operation, in.Owner, result, in.Now)
	text, err := json.Marshal(report)
	if err != nil {
		return 0, fmt.Errorf("encode the report of site %s: %w", in.Owner, err)
	}
	observed, err := Declaration(site)
	if err != nil {
		return 0, err
	}
	if observed == site.Annotations[AnnotationObserved] {
		if string(text) == site.Annotations[AnnotationReport] {
			return 0, nil
		}
		if pause := report.Pause(operation.Before, in.Now); pause > 0 {
			return pause, nil
		}
	}
	return 0, r.patch(ctx, site, func() {
		if site.Annotations == nil {
			site.Annotations = map[string]string{}
		}
		site.Annotations[AnnotationReport], site.Annotations[AnnotationObserved] = string(text), observed
	})
}

// finish carries out what a deletion needs beside its plan, and lets the ConfigMap go when nothing is left. Pause is how long the report waits.
func (r *Reconciler) finish(ctx context.Context, site *corev1.ConfigMap, in Inputs, plan flow.Plan, pause time.Duration) (reconcile.Result, error) {
	if len(plan.Tasks) > 0 {
		outcome, err := r.Runner.Run(ctx, in.Owner, in.Ledger, plan.Tasks)
		if err != nil || !outcome.Done {
			return reconcile.Result{RequeueAfter: outcome.Again}, err
		}
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil // with the ledger as it is now
	}
	if len(in.Emitted) > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil // the watch shows when they are gone
	}
	left, err := flow.Remaining(ctx, r.Uncached, in.Owner, in.Owner.Namespace)
	if err != nil || len(left) > 0 {
		return reconcile.Result{}, err
	}
	ledger := &corev1.Secret{}
	ledger.Namespace, ledger.Name = in.ledger().Namespace, in.ledger().Name
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, ledger)); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete the ledger of site %s: %w", in.Owner, err)
	}
	r.Ledgers.Forget(in.ledger())
	return reconcile.Result{}, r.patch(ctx, site, func() { controllerutil.RemoveFinalizer(site, Finalizer) })
}

// drain deletes what users of the site have left in its namespace. It can be repeated.
func (r *Reconciler) drain(ctx context.Context, owner flow.Owner, _ flow.Task) (flow.Outcome, error) {
	of := []client.ListOption{client.InNamespace(owner.Namespace), client.MatchingLabels{LabelContent: owner.Name}}
	var content corev1.ConfigMapList
	if err := r.Uncached.List(ctx, &content, of...); err != nil {
		return flow.Outcome{}, err
	}
	for i := range content.Items {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &content.Items[i])); err != nil {
			return flow.Outcome{}, err
		}
	}
	if count := len(content.Items); count > 0 {
		return flow.Outcome{Progress: fmt.Sprintf("%d ConfigMaps are left", count), Again: time.Second}, nil
	}
	return flow.Outcome{Done: true}, nil
}

// patch writes a change of the ConfigMap, if it is still the one that was read.
func (r *Reconciler) patch(ctx context.Context, site *corev1.ConfigMap, change func()) error {
	before := client.MergeFromWithOptions(site.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.Client.Patch(ctx, site, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write site %s/%s: %w", site.Namespace, site.Name, err)
	}
	return nil
}
