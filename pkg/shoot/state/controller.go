package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// missingAgain is how long a Shoot without a ShootState waits until it is checked again.
const missingAgain = 10 * time.Minute

// Options are the options of the controller of extension states.
type Options struct {
	Keeper *Keeper
	// Objects reads the extension objects in the seed.
	Objects  *extensionobjects.Objects
	SeedName string
	// Workers is the number of ShootStates that are written concurrently, at least 1.
	Workers int
}

// extensions stores the states of extension objects in ShootStates.
type extensions struct {
	Options
	shoots client.Reader

	mu sync.Mutex
	// written are digests of the stored states, and when they were compared.
	written map[types.NamespacedName]written
	// owners are the Shoots, by the namespaces of their control planes.
	owners map[string]types.NamespacedName
}

// written is a digest of the stored states, and when they were compared.
type written struct {
	digest string
	at     time.Time
}

// AddToManager adds the controller. Without changes it sends one request for each Shoot per period of the Keeper.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, options Options) error {
	e := &extensions{
		Options: options, shoots: garden.GetClient(),
		written: map[types.NamespacedName]written{}, owners: map[string]types.NamespacedName{},
	}
	built, err := watches.Controller{Name: "shoot-state", Reconciler: e, Workers: options.Workers}.AddTo(mgr,
		watches.Self(garden.GetCache(), &corev1beta1.Shoot{}, placed()))
	if err != nil {
		return err
	}
	for _, kind := range extensionobjects.Stored() {
		if err := options.Objects.Watch(mgr, built, kind, handler.EnqueueRequestsFromMapFunc(e.byControlPlane), changed()); err != nil {
			return err
		}
	}
	return nil
}

// byControlPlane maps an extension object to its Shoot, if the Shoot has been reconciled before.
func (e *extensions) byControlPlane(_ context.Context, object client.Object) []reconcile.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	if owner, known := e.owners[extensionobjects.ControlPlaneOf(object)]; known {
		return []reconcile.Request{{NamespacedName: owner}}
	}
	return nil
}

// Reconcile stores the states of extension objects in the ShootState. It reads the states from a cache, and the objects
// that they reference only after a change.
func (e *extensions) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	err := e.shoots.Get(ctx, request.NamespacedName, shoot)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read Shoot %s: %w", request, err)
	}
	if err != nil || !e.keeps(shoot) {
		e.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	seed := &corev1beta1.Seed{}
	if err := e.shoots.Get(ctx, client.ObjectKey{Name: e.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %s: %w", e.SeedName, err)
	}
	if isManaged(seed) {
		return reconcile.Result{}, nil
	}
	e.mu.Lock()
	e.owners[shoot.Status.TechnicalID] = request.NamespacedName
	last := e.written[request.NamespacedName]
	e.mu.Unlock()
	var states []corev1beta1.ExtensionResourceState
	for _, kind := range extensionobjects.Stored() {
		objects, err := e.Objects.List(ctx, kind, shoot)
		if errors.Is(err, extensionobjects.ErrNotSynced) { // a ShootState without the states of this kind would lose them
			return reconcile.Result{RequeueAfter: extensionobjects.SyncedAgain}, nil
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		states = append(states, States(kind.Name, objects)...)
	}
	digest, err := digestOf(states)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := e.Keeper.Clock.Now()
	if wait := last.at.Add(e.Keeper.Period).Sub(now); last.digest == digest && wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	stored, err := e.store(ctx, shoot, states)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("store the states of extensions in ShootState %s: %w", request, err)
	}
	if !stored {
		return reconcile.Result{RequeueAfter: missingAgain}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.written[request.NamespacedName] = written{digest, now}
	return reconcile.Result{RequeueAfter: e.Keeper.Period}, nil
}

// keeps reports whether this gardenlet stores the states of a Shoot: its control plane is on this Seed, and is neither
// being deleted nor migrated.
func (e *extensions) keeps(shoot *corev1beta1.Shoot) bool {
	if ptr.Deref(shoot.Status.SeedName, "") != e.SeedName || shoot.Status.TechnicalID == "" {
		return false
	}
	return shoot.DeletionTimestamp == nil && !moves(shoot)
}

// isManaged reports whether a ManagedSeed makes a Shoot this Seed. Etcd of such a seed is backed up itself, so the states of extensions are
// stored only when a control plane leaves it (Gardener). The garden labels a Seed also with the Seed that hosts its Shoot.
func isManaged(seed *corev1beta1.Seed) bool {
	for key := range seed.Labels {
		if host, is := strings.CutPrefix(key, constants.LabelPrefixSeedName); is && host != seed.Name {
			return true
		}
	}
	return false
}

// moves reports whether the control plane is about to leave its Seed, or has not been restored yet.
func moves(shoot *corev1beta1.Shoot) bool {
	last := ptr.Deref(shoot.Status.LastOperation, corev1beta1.LastOperation{})
	restoring := last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded
	return last.Type == corev1beta1.LastOperationTypeMigrate || restoring
}

// forget removes a Shoot from memory.
func (e *extensions) forget(name types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.written, name)
	for namespace, owner := range e.owners {
		if owner == name {
			delete(e.owners, namespace)
		}
	}
}

// store writes the states into the ShootState if they differ, and reports whether the ShootState exists. The flow of the Shoot creates it.
func (e *extensions) store(ctx context.Context, shoot *corev1beta1.Shoot, states []corev1beta1.ExtensionResourceState) (bool, error) {
	present := &corev1beta1.ShootState{}
	err := e.Keeper.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), present)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read it: %w", err)
	}
	next := corev1beta1.ShootStateSpec{Gardener: present.Spec.Gardener, Extensions: states}
	if next.Resources, err = e.resources(ctx, shoot.Status.TechnicalID, References(states)); err != nil {
		return false, err
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		objects, err := readMachines(ctx, e.Keeper.Seed, shoot.Status.TechnicalID)
		if err != nil {
			return false, err
		}
		machines, _ := machineState{}.with(objects) // those that belong to no MachineDeployment are of an extension that makes them itself
		if next.Gardener, err = withMachines(next.Gardener, machines); err != nil {
			return false, err
		}
	}
	if Equal(present.Spec, next) {
		return true, nil
	}
	if err := fits(next); err != nil {
		return false, err
	}
	before := client.MergeFromWithOptions(present.DeepCopy(), client.MergeFromWithOptimisticLock{})
	present.Spec = next
	metav1.SetMetaDataAnnotation(
		&present.ObjectMeta, constants.AnnotationGardenerTimestamp, e.Keeper.Clock.Now().UTC().Format(time.RFC3339Nano),
	)
	return true, e.Keeper.Garden.Patch(ctx, present, before, client.FieldOwner(e.Keeper.FieldManager))
}

// resources reads the objects that states reference. It skips objects that do not exist.
func (e *extensions) resources(
	ctx context.Context, namespace string, references []autoscalingv1.CrossVersionObjectReference,
) ([]corev1beta1.ResourceData, error) {
	var all []corev1beta1.ResourceData
	for _, reference := range references {
		resource, exists, err := e.Keeper.referenced(ctx, namespace, reference)
		if err != nil {
			return nil, err
		}
		if !exists {
			log.FromContext(ctx).Info("the state of an extension references an object that does not exist",
				"kind", reference.Kind, "namespace", namespace, "name", reference.Name)
			continue
		}
		all = append(all, resource)
	}
	return all, nil
}

func digestOf(states []corev1beta1.ExtensionResourceState) (string, error) {
	text, err := json.Marshal(states)
	if err != nil {
		return "", fmt.Errorf("encode the states of extensions: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// placed passes changes of a Shoot that determine whether this gardenlet stores its states.
func placed() predicate.Predicate {
	decisive := func(object client.Object) any {
		shoot, is := object.(*corev1beta1.Shoot)
		if !is {
			return nil
		}
		return []any{shoot.UID, ptr.Deref(shoot.Status.SeedName, ""), shoot.Status.TechnicalID, shoot.DeletionTimestamp != nil, moves(shoot)}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(decisive(e.ObjectOld), decisive(e.ObjectNew))
	}}
}

// changed passes changes of states.
func changed() predicate.Predicate {
	state := func(object client.Object) any {
		extension, is := object.(extensionsv1alpha1.Object)
		if !is {
			return nil
		}
		status := extension.GetExtensionStatus()
		return []any{status.State, status.Resources, extension.GetDeletionTimestamp() != nil}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(state(e.ObjectOld), state(e.ObjectNew))
	}}
}
