package migration

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/machinecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/test/kit"
)

// Kinds of machines, in the order in which a restoration creates them.
var machineKinds = []string{"MachineClass", "MachineSet", "Machine", "MachineDeployment"}

const (
	machineSet       = technical + "-small-z1"
	machineFinalizer = "machine.sapcloud.io/machine-controller-manager"
	classFinalizer   = "machine.sapcloud.io/machine-controller"
	replicas         = 3
)

func machineKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: kind}
}

// machineObject returns an object of a kind of machines.
func machineObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(machineKind(kind))
	object.SetNamespace(technical)
	object.SetName(name)
	object.SetLabels(map[string]string{"name": machineSet})
	return object
}

// usual is the actuator of a kind that needs nothing in these tests.
type usual[T extensionsv1alpha1.Object] struct{}

func (usual[T]) Reconcile(_ context.Context, object T, _ *extension.Cluster) (extension.Result, error) {
	if config, is := any(object).(*extensionsv1alpha1.OperatingSystemConfig); is {
		config.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Namespace: technical, Name: "user-data"}}
	}
	return extension.Done(), nil
}

func (usual[T]) Delete(context.Context, T, *extension.Cluster) (extension.Result, error) {
	return extension.Done(), nil
}

func (usual[T]) ForceDelete(context.Context, T, *extension.Cluster) (extension.Result, error) {
	return extension.Done(), nil
}

func (usual[T]) Migrate(context.Context, T, *extension.Cluster) (extension.Result, error) {
	return extension.Done(), nil
}

func (u usual[T]) Restore(ctx context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	return u.Reconcile(ctx, object, cluster)
}

// workers is the actuator of Workers, with the steps of Gardener's library.
type workers struct {
	usual[*extensionsv1alpha1.Worker]
	*seed
}

func (w workers) Reconcile(ctx context.Context, object *extensionsv1alpha1.Worker, _ *extension.Cluster) (extension.Result, error) {
	class := machineObject("MachineClass", machineSet+"-class", nil)
	class.SetFinalizers([]string{machineFinalizer})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: technical, Name: machineSet + "-class", Labels: map[string]string{"gardener.cloud/purpose": "machineclass"}, Finalizers: []string{classFinalizer},
	}}
	deployment := machineObject("MachineDeployment", machineSet, map[string]any{"replicas": int64(replicas)})
	deployment.SetFinalizers([]string{machineFinalizer})
	for _, each := range []client.Object{class, secret, deployment} {
		if err := client.IgnoreAlreadyExists(w.seed.seed.Create(ctx, each)); err != nil {
			return extension.Result{}, err
		}
	}
	object.Status.MachineDeployments = []extensionsv1alpha1.MachineDeployment{{Name: machineSet, Minimum: 1, Maximum: replicas}}
	return extension.Done(), nil
}

func (w workers) Delete(context.Context, *extensionsv1alpha1.Worker, *extension.Cluster) (extension.Result, error) {
	w.lose("all machines: the Worker was deleted")
	return extension.Done(), nil
}

// Restore creates the machines in the state, and starts machine-controller-manager.
func (w workers) Restore(ctx context.Context, object *extensionsv1alpha1.Worker, cluster *extension.Cluster) (extension.Result, error) {
	if object.Status.State == nil {
		return extension.Result{}, fmt.Errorf("the Worker has no state")
	}
	content, state := struct{ State []byte }{}, struct {
		MachineDeployments map[string]struct {
			Replicas              int64
			MachineSets, Machines []map[string]any
		}
	}{}
	if err := json.Unmarshal(object.Status.State.Raw, &content); err != nil {
		return extension.Result{}, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(content.State))
	if err != nil {
		return extension.Result{}, err
	}
	if err := json.NewDecoder(reader).Decode(&state); err != nil {
		return extension.Result{}, err
	}
	for name, stored := range state.MachineDeployments {
		for _, each := range slices.Concat(stored.MachineSets, stored.Machines) {
			if err := client.IgnoreAlreadyExists(w.seed.seed.Create(ctx, &unstructured.Unstructured{Object: each})); err != nil {
				return extension.Result{}, err
			}
		}
		deployment := machineObject("MachineDeployment", name, map[string]any{"replicas": stored.Replicas})
		if err := client.IgnoreAlreadyExists(w.seed.seed.Create(ctx, deployment)); err != nil {
			return extension.Result{}, err
		}
	}
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: machinecontrollermanager.Name}}
	if err := w.seed.seed.Get(ctx, client.ObjectKeyFromObject(manager), manager); err != nil {
		return extension.Result{}, err
	}
	if ptr.Deref(manager.Spec.Replicas, 1) != 0 {
		w.lose("machines: machine-controller-manager ran before they were restored")
	}
	manager.Spec.Replicas = ptr.To[int32](1)
	if err := w.seed.seed.Update(ctx, manager); err != nil {
		return extension.Result{}, err
	}
	return w.Reconcile(ctx, object, cluster)
}

// lose records that machines were deleted or made.
func (s *seed) lose(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, what)
}

// infrastructure runs the extensions for workers, and simulates machine-controller-manager.
func (s *seed) infrastructure(mgr manager.Manager) {
	s.Helper()
	of := extension.Options{Type: "local"}
	kit.Must(s, extension.AddToManager(mgr, usual[*extensionsv1alpha1.Infrastructure]{}, of))
	kit.Must(s, extension.AddToManager(mgr, usual[*extensionsv1alpha1.ControlPlane]{}, of))
	kit.Must(s, extension.AddToManager(mgr, usual[*extensionsv1alpha1.Network]{}, of))
	kit.Must(s, extension.AddToManager(mgr, usual[*extensionsv1alpha1.OperatingSystemConfig]{}, extension.Options{Type: "linux"}))
	kit.Must(s, extension.AddToManager(mgr, workers{seed: s}, of))
	kit.Answer(s.T, s.seed, s.manageMachines, machineKind("MachineDeployment"), machineKind("MachineSet"), machineKind("Machine"))
}

// manageMachines is what machine-controller-manager does with an object: it makes machines that are missing, and deletes those whose objects
// are deleted. It counts both.
func (s *seed) manageMachines(ctx context.Context, object unstructuredObject) {
	manager := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: technical, Name: machinecontrollermanager.Name}
	if s.seed.Get(ctx, key, manager) != nil || manager.DeletionTimestamp != nil || ptr.Deref(manager.Spec.Replicas, 1) == 0 {
		return
	}
	if object.GetDeletionTimestamp() != nil {
		s.lose("deleted " + object.GetKind() + " " + object.GetName())
		object.SetFinalizers(nil)
		_ = s.seed.Update(ctx, object)
		return
	}
	if len(object.GetFinalizers()) == 0 {
		object.SetFinalizers([]string{machineFinalizer})
		_ = s.seed.Update(ctx, object)
		return
	}
	child, wanted := map[string]string{"MachineDeployment": "MachineSet", "MachineSet": "Machine"}[object.GetKind()], int64(1)
	if child == "" {
		return
	}
	if object.GetKind() == "MachineSet" {
		wanted, _, _ = unstructured.NestedInt64(object.Object, "spec", "replicas")
	}
	owner := metav1.OwnerReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID(), Controller: ptr.To(true)}
	children := &unstructured.UnstructuredList{}
	children.SetGroupVersionKind(machineKind(child + "List"))
	if s.seed.List(ctx, children, client.InNamespace(technical)) != nil {
		return
	}
	for i := range children.Items {
		if len(children.Items[i].GetOwnerReferences()) == 0 {
			children.Items[i].SetOwnerReferences([]metav1.OwnerReference{owner})
			_ = s.seed.Update(ctx, &children.Items[i])
		}
	}
	if int64(len(children.Items)) >= wanted {
		return
	}
	name := machineSet + "-" + rand.String(5)
	made := machineObject(child, name, map[string]any{"replicas": int64(replicas)})
	if child == "Machine" {
		made = machineObject(child, name, map[string]any{"providerID": "local:///" + rand.String(12), "class": map[string]any{"name": machineSet + "-class"}})
		made.SetLabels(map[string]string{"name": machineSet, "node": "node-of-" + name})
	}
	made.SetOwnerReferences([]metav1.OwnerReference{owner})
	made.SetFinalizers([]string{machineFinalizer})
	if s.seed.Create(ctx, made) == nil {
		s.lose("made " + child + " " + name)
	}
}

// machines describes the objects of a kind for machines in the seed: their names, labels and what they declare.
func (s *seed) machines(kind string) []string {
	s.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machineKind(kind + "List"))
	kit.Must(s, s.seed.List(s.Context(), list))
	found := []string{}
	for i := range list.Items {
		text, err := json.Marshal([]any{list.Items[i].GetName(), list.Items[i].GetLabels(), list.Items[i].Object["spec"]})
		kit.Must(s, err)
		found = append(found, string(text))
	}
	slices.Sort(found)
	return found
}
