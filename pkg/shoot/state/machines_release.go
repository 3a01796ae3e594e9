package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// groupMachines is the API group of the objects that describe machines.
var groupMachines = schema.GroupVersion{Group: "machine.sapcloud.io", Version: "v1alpha1"}

// finalizersOfMachines are those of machine-controller-manager and of its drivers. Without them, the deletion of an object deletes no machine.
var finalizersOfMachines = []string{"machine.sapcloud.io/machine-controller-manager", "machine.sapcloud.io/machine-controller"}

// Labels of the Secrets that machine-controller-manager uses (Gardener).
const (
	labelPurpose         = "gardener.cloud/purpose"
	purposeMachineClass  = "machineclass"
	purposeCloudProvider = "cloudprovider"
	maxNamed             = 5
)

// listMachines lists the objects of a kind of machine.sapcloud.io, none if the seed does not define it.
func listMachines(ctx context.Context, reader client.Reader, namespace, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(groupMachines.WithKind(kind + "List"))
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list the objects of kind %s in namespace %s: %w", kind, namespace, err)
	}
	return list.Items, nil
}

// readMachines reads the objects that describe the machines of a control plane.
func readMachines(ctx context.Context, reader client.Reader, namespace string) (machineObjects, error) {
	var objects machineObjects
	var errs [3]error
	objects.machines, errs[0] = listMachines(ctx, reader, namespace, kindMachine)
	objects.sets, errs[1] = listMachines(ctx, reader, namespace, kindMachineSet)
	objects.deployments, errs[2] = listMachines(ctx, reader, namespace, kindMachineDeployment)
	return objects, errors.Join(errs[:]...)
}

// remainder is what must be given up of the objects for machines, in this order.
type remainder struct {
	objects []client.Object
	// users are Secrets that stay, but lose the finalizers of machine-controller-manager.
	users []client.Object
}

// remaining lists the objects for machines that are left: the machines, what made them, and the Secrets with their credentials.
func (k *Keeper) remaining(ctx context.Context, namespace string, objects machineObjects) (remainder, error) {
	var left remainder
	classes, err := listMachines(ctx, k.Seed, namespace, "MachineClass")
	if err != nil {
		return left, err
	}
	for _, list := range [][]unstructured.Unstructured{objects.machines, objects.sets, objects.deployments, classes} {
		for i := range list {
			left.objects = append(left.objects, &list[i])
		}
	}
	for _, purpose := range []string{purposeMachineClass, purposeCloudProvider} {
		secrets := &metav1.PartialObjectMetadataList{}
		secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := k.Seed.List(ctx, secrets, client.InNamespace(namespace), client.MatchingLabels{labelPurpose: purpose}); err != nil {
			return left, fmt.Errorf("list the Secrets for machines in namespace %s: %w", namespace, err)
		}
		for i := range secrets.Items {
			secret := &secrets.Items[i]
			secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			if purpose == purposeMachineClass {
				left.objects = append(left.objects, secret)
			} else if isFinalized(secret) {
				left.users = append(left.users, secret)
			}
		}
	}
	return left, nil
}

func isFinalized(object client.Object) bool {
	return slices.ContainsFunc(object.GetFinalizers(), func(name string) bool { return slices.Contains(finalizersOfMachines, name) })
}

// MachinesLeft names the objects for machines that are left in the namespace of a control plane, empty if there are none.
func (k *Keeper) MachinesLeft(ctx context.Context, namespace string) (string, error) {
	objects, err := readMachines(ctx, k.Seed, namespace)
	if err != nil {
		return "", err
	}
	left, err := k.remaining(ctx, namespace, objects)
	return left.text(), err
}

func (r remainder) text() string {
	all := slices.Concat(r.objects, r.users)
	var names []string
	for _, object := range all[:min(len(all), maxNamed)] {
		names = append(names, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// ReleaseMachines deletes the objects for machines in the namespace of a control plane that leaves its seed, without deleting a machine:
// the finalizers of machine-controller-manager go first. Neither it nor the extension may run any more. It deletes nothing unless
// [Keeper.SaveLeaving] has declared the state of the machines complete, and each object is stored in the ShootState as it is.
func (k *Keeper) ReleaseMachines(ctx context.Context, writer client.Client, shoot *corev1beta1.Shoot, namespace string) error {
	present := &corev1beta1.ShootState{}
	if err := k.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), present); err != nil {
		return fmt.Errorf("read ShootState %s/%s, in which the state of machines is stored: %w", shoot.Namespace, shoot.Name, err)
	}
	if present.Annotations[constants.AnnotationMachinesGivenUp] != "true" {
		return fmt.Errorf("the state of machines in ShootState %s/%s is not complete yet", shoot.Namespace, shoot.Name)
	}
	stored, err := storedMachines(present.Spec)
	if err != nil {
		return fmt.Errorf("ShootState %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	objects, err := readMachines(ctx, k.Seed, namespace)
	if err != nil {
		return err
	}
	if missing := stored.lacks(objects); len(missing) > 0 {
		return fmt.Errorf("these objects in namespace %s are not stored in ShootState %s/%s as they are, so they are not deleted: %s",
			namespace, shoot.Namespace, shoot.Name, strings.Join(missing[:min(len(missing), maxNamed)], ", "))
	}
	left, err := k.remaining(ctx, namespace, objects)
	if err != nil {
		return err
	}
	var errs []error
	kind := ""
	for _, object := range left.objects {
		of := object.GetObjectKind().GroupVersionKind().Kind
		if of != kind && len(errs) > 0 {
			break // what owns an object goes after it
		}
		kind = of
		if err := k.releaseMachine(ctx, writer, object, true); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, secret := range left.users {
		errs = append(errs, k.releaseMachine(ctx, writer, secret, false))
	}
	return errors.Join(errs...)
}

// releaseMachine removes the finalizers of machine-controller-manager from an object and deletes it, unless it has changed since it was read.
func (k *Keeper) releaseMachine(ctx context.Context, writer client.Client, object client.Object, deletes bool) error {
	name := object.GetObjectKind().GroupVersionKind().Kind + " " + client.ObjectKeyFromObject(object).String()
	uid, version := object.GetUID(), object.GetResourceVersion()
	if isFinalized(object) {
		kept := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return slices.Contains(finalizersOfMachines, name) })
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version, "finalizers": kept}})
		if err != nil {
			return fmt.Errorf("encode the finalizers of %s: %w", name, err)
		}
		changed := &metav1.PartialObjectMetadata{}
		changed.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		changed.Namespace, changed.Name = object.GetNamespace(), object.GetName()
		err = writer.Patch(ctx, changed, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(k.FieldManager))
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove the finalizers of %s: %w", name, err)
		}
		version = changed.ResourceVersion
	}
	if !deletes || object.GetDeletionTimestamp() != nil {
		return nil // without finalizers it is gone
	}
	err := writer.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s, whose machine stays: %w", name, err)
	}
	return nil
}
