package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
)

// ObjectName identifies an extension object in the namespace of a control plane.
type ObjectName struct{ Kind, Name string }

// Leaving says what machines a control plane that leaves its seed has.
type Leaving struct {
	// Machines is set if machine-controller-manager makes them. Runs is set until its deletion was requested, and Ended once none of its
	// Pods exists.
	Machines, Runs, Ended bool
}

// Left is what is left of a control plane.
type Left struct {
	// Objects are the existing extension objects, and whether their extension has given them up.
	Objects map[ObjectName]bool
	// MachinesGivenUp is set once the stored state of machines is complete and final: see [constants.AnnotationMachinesGivenUp].
	MachinesGivenUp bool
}

// SaveLeaving stores the states of the extension objects and of the machines in the namespace of a control plane that leaves its seed.
// Entries of objects that no longer exist stay: they were stored before. The reads and the write are not cached, so an object whose
// extension has given it up may be deleted without a loss. The ShootState must exist.
//
// While machine-controller-manager may run, the existing machines replace the stored ones. Once neither it nor the extension works on them,
// their state is final, and what is deleted after that stays in it.
func (k *Keeper) SaveLeaving(ctx context.Context, shoot *corev1beta1.Shoot, namespace string, leaving Leaving) (Left, error) {
	left, states := Left{Objects: map[ObjectName]bool{}}, []corev1beta1.ExtensionResourceState(nil)
	worked := leaving.Runs || !leaving.Ended
	for _, kind := range extensionobjects.Stored() {
		objects, err := k.listed(ctx, kind, namespace)
		if err != nil {
			return Left{}, err
		}
		for _, object := range objects {
			given := givenUp(object)
			left.Objects[ObjectName{kind.Name, object.GetName()}] = given
			worked = worked || kind.Name == kindWorker && !given
			object.SetDeletionTimestamp(nil) // its state counts until it is gone
		}
		states = append(states, States(kind.Name, objects)...)
	}
	present := &corev1beta1.ShootState{}
	if err := k.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), present); err != nil {
		return Left{}, fmt.Errorf("read ShootState %s/%s, in which the states of extensions are stored: %w", shoot.Namespace, shoot.Name, err)
	}
	next := corev1beta1.ShootStateSpec{Gardener: present.Spec.Gardener, Extensions: Merged(present.Spec.Extensions, states, left.Objects)}
	var err error
	if next.Resources, err = k.resources(ctx, namespace, present.Spec.Resources, References(next.Extensions)); err != nil {
		return Left{}, err
	}
	if leaving.Machines {
		final := present.Annotations[constants.AnnotationMachinesGivenUp] == "true" && !leaving.Runs
		if next.Gardener, err = k.machines(ctx, namespace, present.Spec, final); err != nil {
			return Left{}, err
		}
		left.MachinesGivenUp = final || !worked
	}
	return left, k.update(ctx, present, next, left.MachinesGivenUp)
}

// machines returns the entries of a ShootState with the state of the existing machines, added to the stored ones if those are final.
func (k *Keeper) machines(
	ctx context.Context, namespace string, present corev1beta1.ShootStateSpec, final bool,
) ([]corev1beta1.GardenerResourceData, error) {
	stored := machineState{}
	if final {
		var err error
		if stored, err = storedMachines(present); err != nil {
			return nil, err
		}
	}
	objects, err := readMachines(ctx, k.Seed, namespace)
	if err != nil {
		return nil, err
	}
	state, unowned := stored.with(objects)
	if len(unowned) > 0 {
		return nil, fmt.Errorf("in namespace %s, no MachineDeployment has these objects, so that their machines would be lost in a move: %s",
			namespace, strings.Join(unowned[:min(len(unowned), maxNamed)], ", "))
	}
	return withMachines(present.Gardener, state)
}

// update writes a changed ShootState.
func (k *Keeper) update(ctx context.Context, present *corev1beta1.ShootState, next corev1beta1.ShootStateSpec, givenUp bool) error {
	if Equal(present.Spec, next) && givenUp == (present.Annotations[constants.AnnotationMachinesGivenUp] == "true") {
		return nil
	}
	if err := fits(next); err != nil {
		return fmt.Errorf("ShootState %s/%s: %w", present.Namespace, present.Name, err)
	}
	before := client.MergeFromWithOptions(present.DeepCopy(), client.MergeFromWithOptimisticLock{})
	present.Spec = next
	metav1.SetMetaDataAnnotation(&present.ObjectMeta, constants.AnnotationGardenerTimestamp, k.Clock.Now().UTC().Format(time.RFC3339Nano))
	if delete(present.Annotations, constants.AnnotationMachinesGivenUp); givenUp {
		present.Annotations[constants.AnnotationMachinesGivenUp] = "true"
	}
	if err := k.Garden.Patch(ctx, present, before, client.FieldOwner(k.FieldManager)); err != nil {
		return fmt.Errorf("store the states of extensions and machines in ShootState %s/%s: %w", present.Namespace, present.Name, err)
	}
	return nil
}

// SaveMachines stores the state of the existing machines in the ShootState, and returns it. It is for machines that their control plane has
// not given up.
func (k *Keeper) SaveMachines(ctx context.Context, shoot *corev1beta1.Shoot, namespace string) (*corev1beta1.ShootState, error) {
	present := &corev1beta1.ShootState{}
	if err := k.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), present); err != nil {
		return nil, fmt.Errorf("read ShootState %s/%s, in which the state of machines is stored: %w", shoot.Namespace, shoot.Name, err)
	}
	next := *present.Spec.DeepCopy()
	var err error
	if next.Gardener, err = k.machines(ctx, namespace, present.Spec, false); err != nil {
		return nil, err
	}
	return present, k.update(ctx, present, next, false)
}

// ForgetGivenUp records that the extension works on the machines again, so that their stored state is not final any more.
func (k *Keeper) ForgetGivenUp(ctx context.Context, present *corev1beta1.ShootState) error {
	return k.update(ctx, present, present.Spec, false)
}

// listed returns the objects of a kind in a namespace, none if the seed does not define the kind.
func (k *Keeper) listed(ctx context.Context, kind extensionobjects.Kind, namespace string) ([]extensionsv1alpha1.Object, error) {
	if kind.Name == corev1beta1.KindBackupEntry {
		return nil, nil // it is not in the namespace, and its controller hands it over
	}
	list := kind.NewList()
	err := k.Seed.List(ctx, list, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	var objects []extensionsv1alpha1.Object
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(extensionsv1alpha1.Object); ok {
				objects = append(objects, object)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list the objects of kind %s in namespace %s: %w", kind.Name, namespace, err)
	}
	return objects, nil
}

// Merged returns the states of a ShootState after those of existing objects were read. found are the existing objects.
func Merged(stored, read []corev1beta1.ExtensionResourceState, found map[ObjectName]bool) []corev1beta1.ExtensionResourceState {
	merged := slices.Clone(read)
	for _, entry := range stored {
		if _, exists := found[ObjectName{entry.Kind, ptr.Deref(entry.Name, "")}]; !exists {
			merged = append(merged, entry)
		}
	}
	slices.SortStableFunc(merged, func(a, b corev1beta1.ExtensionResourceState) int {
		return strings.Compare(a.Kind+"/"+ptr.Deref(a.Name, ""), b.Kind+"/"+ptr.Deref(b.Name, ""))
	})
	return merged
}

// kindWorker is the kind of the extension for machines.
const kindWorker = "Worker"

// finalizerOfExtensions is the begin of the finalizers of extensions.
const finalizerOfExtensions = "extensions.gardener.cloud/"

// givenUp reports whether an extension has given up an object: it has finished the last requested migration, and does not finalize
// the object any more.
func givenUp(object extensionsv1alpha1.Object) bool {
	last, annotations := object.GetExtensionStatus().LastOperation, object.GetAnnotations()
	since, err := time.Parse(time.RFC3339Nano, annotations[constants.AnnotationGardenerTimestamp])
	return err == nil && last != nil && last.Type == corev1beta1.LastOperationTypeMigrate && last.State == corev1beta1.LastOperationStateSucceeded &&
		annotations[constants.AnnotationGardenerOperation] == "" && !last.LastUpdateTime.Time.Before(since.Truncate(time.Second)) &&
		!slices.ContainsFunc(object.GetFinalizers(), func(name string) bool { return strings.HasPrefix(name, finalizerOfExtensions) })
}

// resources returns the entries for the objects that states name. The entry of one that no longer exists stays.
func (k *Keeper) resources(
	ctx context.Context, namespace string, stored []corev1beta1.ResourceData, references []autoscalingv1.CrossVersionObjectReference,
) ([]corev1beta1.ResourceData, error) {
	var all []corev1beta1.ResourceData
	for _, reference := range references {
		entry, exists, err := k.referenced(ctx, namespace, reference)
		if err != nil {
			return nil, err
		}
		if exists {
			all = append(all, entry)
			continue
		}
		at := slices.IndexFunc(stored, func(data corev1beta1.ResourceData) bool { return data.CrossVersionObjectReference == reference })
		if at >= 0 {
			all = append(all, stored[at])
		}
	}
	return all, nil
}

// referenced reads a Secret or ConfigMap that a state references, and reports whether it exists.
func (k *Keeper) referenced(
	ctx context.Context, namespace string, reference autoscalingv1.CrossVersionObjectReference,
) (entry corev1beta1.ResourceData, exists bool, err error) {
	var object client.Object = &corev1.Secret{}
	if reference.Kind == "ConfigMap" {
		object = &corev1.ConfigMap{}
	}
	err = k.Seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, object)
	if apierrors.IsNotFound(err) {
		return entry, false, nil
	}
	if err != nil {
		return entry, false, fmt.Errorf("read %s %s/%s: %w", reference.Kind, namespace, reference.Name, err)
	}
	entry, err = resourceOf(reference, object)
	return entry, true, err
}
