package managedseed

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
)

// fieldManager is the field manager of all writes.
const fieldManager client.FieldOwner = "gardenlet"

// Reasons of Events.
//
// +events:on=ManagedSeed
const (
	eventFailed       = "ReconcileError" // Warning: the gardenlet of a ManagedSeed could not be deployed
	eventDeleteFailed = "DeleteError"    // Warning: the Seed of a ManagedSeed, or its gardenlet, could not be deleted
)

// Options are the options of the controller.
type Options struct {
	// SeedName is the name of the Seed. Version is that of this program.
	SeedName, Version string
	// Config is the configuration of this gardenlet.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Garden is the address and the authority of the garden.
	Garden clientcmdapi.Cluster
	// Image is the image of this gardenlet, and the overwrites are those that it was started with.
	Image, ImageOverwrites, ComponentImageOverwrites string
	Recorder                                         events.EventRecorder
	Clock                                            clock.PassiveClock
	// Connect returns a client of the API server of a Shoot. It is nil for the Service in the seed, with a certificate of the Shoot's authority.
	Connect func(ctx context.Context, shoot *corev1beta1.Shoot) (client.Client, error)
}

// reconciler deploys the gardenlets of ManagedSeeds.
type reconciler struct {
	Options

	// garden reads from the cache of the garden, and direct from its API server. objects reads single objects.
	garden, direct client.Client
	objects        *gardenobjects.Cache
	// seed reads from and writes to the API server of the seed.
	seed    client.Client
	emitter *flow.Emitter
	issuer  gardenletdeployer.Issuer
}

func newIssuer(o Options, direct client.Client) gardenletdeployer.Issuer {
	return gardenletdeployer.Issuer{Garden: direct, Cluster: o.Garden, FieldManager: fieldManager, Random: rand.Reader, Clock: o.Clock}
}

// Reconcile deploys the gardenlet of one ManagedSeed, or removes it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	managed := &v1alpha1.ManagedSeed{}
	if err := r.garden.Get(ctx, request.NamespacedName, managed); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.objects.Release(userOf(request.NamespacedName))
			flow.Forget(FlowName, request.Namespace, request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if managed.Spec.Shoot == nil {
		return reconcile.Result{}, nil
	}
	shoot := &corev1beta1.Shoot{}
	err := r.garden.Get(ctx, client.ObjectKey{Namespace: managed.Namespace, Name: managed.Spec.Shoot.Name}, shoot)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || cmp.Or(ptr.Deref(shoot.Status.SeedName, ""), ptr.Deref(shoot.Spec.SeedName, "")) != r.SeedName {
		shoot = nil // the Seed that has the control plane deploys, also while the Shoot is bound to another one
	}
	if managed.DeletionTimestamp != nil {
		return r.delete(ctx, managed, shoot)
	}
	if err := r.hold(ctx, managed); err != nil {
		return reconcile.Result{}, err
	}
	ready := shootReconciled(shoot, managed.Spec.Shoot.Name)
	if ready.status != corev1beta1.ConditionTrue {
		return reconcile.Result{RequeueAfter: r.Config.Controllers.ManagedSeed.WaitSyncPeriod.Duration}, r.report(ctx, managed, ready)
	}
	found, err := r.deploy(ctx, managed, shoot)
	if err != nil {
		r.Recorder.Eventf(managed, nil, corev1.EventTypeWarning, eventFailed, "Reconcile", "%s", err.Error())
		found = registered(corev1beta1.ConditionFalse, reasonFailed, err.Error())
	}
	return reconcile.Result{RequeueAfter: r.Config.Controllers.ManagedSeed.SyncPeriod.Duration}, errors.Join(err, r.report(ctx, managed, ready, found))
}

// hold adds the finalizer.
func (r *reconciler) hold(ctx context.Context, managed *v1alpha1.ManagedSeed) error {
	if controllerutil.ContainsFinalizer(managed, constants.GardenerName) {
		return nil
	}
	return r.patch(ctx, managed, func() { controllerutil.AddFinalizer(managed, constants.GardenerName) })
}

// patch changes the metadata of a ManagedSeed, unless it has changed since it was read.
func (r *reconciler) patch(ctx context.Context, managed *v1alpha1.ManagedSeed, change func()) error {
	before := client.MergeFromWithOptions(managed.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.garden.Patch(ctx, managed, before, fieldManager); err != nil {
		return fmt.Errorf("change the metadata of ManagedSeed %s: %w", managed.Name, err)
	}
	return nil
}

// annotate changes annotations of a ManagedSeed. An empty value removes one.
func (r *reconciler) annotate(managed *v1alpha1.ManagedSeed) func(context.Context, map[string]string) error {
	return func(ctx context.Context, values map[string]string) error {
		return r.patch(ctx, managed, func() { managed.Annotations = gardenletdeployer.Annotated(managed.Annotations, values) })
	}
}

// deploy brings the gardenlet of a ManagedSeed to the state that it declares, and returns the condition SeedRegistered.
func (r *reconciler) deploy(ctx context.Context, managed *v1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) (finding, error) {
	readAll := r.objects.Begin(userOf(client.ObjectKeyFromObject(managed)))
	in, err := r.observe(ctx, managed, shoot)
	if err != nil {
		return finding{}, err
	}
	readAll()
	connected, err := r.connect(ctx, shoot)
	if err != nil {
		return finding{}, err
	}
	target := gardenletdeployer.Target{Client: connected, Namespace: constants.GardenNamespace, FieldManager: fieldManager}
	if err := target.Owner(ctx, managed.Name); err != nil {
		return finding{}, err
	}
	objects, err := in.Objects(ctx, nil, shoot.Spec.Kubernetes.Version)
	if err != nil {
		return finding{}, err
	}
	seed, err := r.seedOf(ctx, managed.Name)
	if err != nil {
		return finding{}, err
	}
	step, wait, err := r.prepare(ctx, managed, seed, target, objects.Once)
	if err != nil {
		return finding{}, err
	}
	result, err := r.emitter.Emit(ctx, ownerOf(managed), planFor(shoot.Status.TechnicalID, objects.Managed, wait))
	if err != nil {
		return finding{}, err
	}
	return seedRegistered(result, seed, step, wait), nil
}

// seedOf reads a Seed. It is nil if it does not exist.
func (r *reconciler) seedOf(ctx context.Context, name string) (*corev1beta1.Seed, error) {
	seed := &corev1beta1.Seed{}
	err := r.direct.Get(ctx, client.ObjectKey{Name: name}, seed)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Seed %s: %w", name, err)
	}
	return seed, nil
}

// prepare gives the gardenlet its credentials once its namespace exists, and creates what it takes over. It returns why the gardenlet cannot
// be deployed yet, or an empty text.
func (r *reconciler) prepare(
	ctx context.Context, managed *v1alpha1.ManagedSeed, seed *corev1beta1.Seed, target gardenletdeployer.Target, once []client.Object,
) (step gardenletdeployer.Step, wait string, err error) {
	exists, err := target.Ready(ctx)
	if err != nil {
		return step, "", err
	}
	if !exists {
		return step, fmt.Sprintf("the namespace %s of the Shoot does not exist", target.Namespace), nil
	}
	var registration *graph.Registration
	if seed != nil {
		registration = graph.RegistrationOf(seed)
	}
	step, err = gardenletdeployer.Ensure(ctx, gardenletdeployer.Object{
		Kind: gardenletdeployer.ManagedSeed, Namespace: managed.Namespace, Name: managed.Name, Annotations: managed.Annotations,
		Bootstrap: bootstrapOf(managed),
	}, graph.MayBootstrap(registration, managed.Annotations, r.Clock.Now()), r.issuer, target, r.annotate(managed))
	if err != nil {
		return step, "", err
	}
	return step, step.Missing, target.Create(ctx, once)
}

func bootstrapOf(managed *v1alpha1.ManagedSeed) v1alpha1.Bootstrap {
	return ptr.Deref(managed.Spec.Gardenlet.Bootstrap, v1alpha1.BootstrapToken)
}

// report writes conditions if they have changed.
func (r *reconciler) report(ctx context.Context, managed *v1alpha1.ManagedSeed, findings ...finding) error {
	status := managed.Status.DeepCopy()
	status.ObservedGeneration = managed.Generation
	for _, found := range findings {
		condition := corev1beta1.Condition{Type: found.kind, Status: found.status, Reason: found.reason, Message: found.message}
		before := corev1beta1.FindCondition(status.Conditions, found.kind)
		status.Conditions = corev1beta1.SetCondition(status.Conditions, corev1beta1.KeepTimes(before, condition, r.Clock.Now()))
	}
	if equality.Semantic.DeepEqual(*status, managed.Status) {
		return nil
	}
	before := client.MergeFrom(managed.DeepCopy())
	managed.Status = *status
	if err := client.IgnoreNotFound(r.garden.Status().Patch(ctx, managed, before, fieldManager)); err != nil {
		return fmt.Errorf("write the status of ManagedSeed %s: %w", managed.Name, err)
	}
	return nil
}
