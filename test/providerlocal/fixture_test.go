// Package providerlocal tests provider-local on a real control plane. The tests create objects of each kind and check their
// statuses. Machines are Nodes that KWOK simulates. Resource-managers apply the emitted objects. The one of the Shoot
// applies them to the same cluster.
package providerlocal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/provider/local/controllers"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

const head = "apiVersion: local.provider.extensions.gardener.cloud/v1alpha1\nkind: "

// world is a seed with a Shoot.
type world struct {
	*testing.T
	client.Client
	cp       *controlplane.ControlPlane
	scheme   *runtime.Scheme
	settings local.Settings
	requests *kit.Requests
	stop     func()
	// shoot is the technical ID of the Shoot, and the namespace of its control plane.
	shoot string
}

// newWorld starts provider-local and the resource-managers, and declares a Shoot.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, cp: shared.Get(t), scheme: runtime.NewScheme()}
	kit.Must(t, clientgoscheme.AddToScheme(w.scheme))
	kit.Must(t, extension.AddToScheme(w.scheme))
	kit.DefineManagedResources(t, w.cp.Config())
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	_, err = envtest.InstallCRDs(w.cp.Config(), envtest.CRDInstallOptions{MaxTime: kit.WaitTimeout, Paths: []string{filepath.Join(root, "config", "crd", "extensions"), filepath.Join(root, "config", "crd", "machine")}})
	kit.Must(t, err)
	w.Client, err = client.New(w.cp.Config(), client.Options{Scheme: w.scheme})
	kit.Must(t, err)
	w.ensure(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}})
	w.shoot = kit.NewNamespace(t, w.Client, "shoot--dev--", nil)
	w.declareShoot()
	for _, class := range []string{"seed", "resources"} {
		kit.StartManager(t, w.cp.Kubeconfig(), nil, "controllers: {resourceClass: "+class+"}")
	}
	w.settings = local.Settings{
		Machines: local.Machines{Simulated: true, Namespace: constants.GardenNamespace}, DNSZones: []string{"local.gardener.cloud"}, BackupDirectory: t.TempDir(), BackupHostPath: "/etc/buckets",
		DNSConfigMap: client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: w.shoot + "-zones"},
	}
	w.start()
	return w
}

// start runs provider-local until stop is called or the test ends.
func (w *world) start() {
	w.Helper()
	w.requests = &kit.Requests{}
	config := w.cp.Config()
	config.QPS = -1
	config.Wrap(w.requests.Wrap)
	options := kit.ManagerOptions(w.scheme)
	machines := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{local.LabelProvider: local.Type})}
	options.Cache = cache.Options{NewInformer: rewatch.NewInformer, ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: machines, &corev1.Node{}: machines}}
	options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Service{}, &corev1.ConfigMap{}}}
	mgr, err := manager.New(config, options)
	kit.Must(w, err)
	vector, err := images.Load("")
	kit.Must(w, err)
	kit.Must(w, controllers.AddToManager(w.Context(), mgr, controllers.Options{
		Settings: w.settings, Version: "v1", Clock: clock.RealClock{}, Images: vector,
		Common: extension.Options{Classes: []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot, extensionsv1alpha1.ExtensionClassSeed}},
	}))
	w.stop = kit.Run(w, mgr)
}

// declareShoot creates the Cluster of the Shoot, and the Secrets that gardenlet would create.
func (w *world) declareShoot() {
	w.Helper()
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: w.shoot}}
	w.raw(&cluster.Spec.CloudProfile, `apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {name: local}
spec:
  type: local
  providerConfig:
    apiVersion: local.provider.extensions.gardener.cloud/v1alpha1
    kind: CloudProfileConfig
    machineImages: [{name: linux, versions: [{version: 1.0.0, image: "machine:1.0.0"}, {version: 1.1.0, image: "machine:1.1.0"}]}]
`)
	cluster.Spec.Seed = &runtime.RawExtension{}
	w.raw(cluster.Spec.Seed, "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: seed}\nspec: {networks: {pods: 10.99.0.0/17, services: 10.99.128.0/18}}\n")
	w.raw(&cluster.Spec.Shoot, "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: blue, namespace: garden-dev}\n"+
		"spec: {provider: {type: local}, networking: {pods: 100.96.0.0/16, services: 100.64.0.0/16}}\n")
	kit.Must(w, w.Create(w.Context(), cluster))
	w.Cleanup(func() { _ = w.Delete(w.Context(), cluster) })
	for name, data := range map[string]map[string][]byte{"cloudprovider": nil, "user-data": {"cloud_config": []byte("#!/bin/sh\n")}} {
		kit.Must(w, w.Create(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot, Name: name}, Data: data}))
	}
}

func (w *world) raw(into *runtime.RawExtension, text string) {
	w.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	kit.Must(w, err)
	into.Raw = content
}

func (w *world) ensure(object client.Object) {
	w.Helper()
	if err := w.Create(w.Context(), object); !apierrors.IsAlreadyExists(err) {
		kit.Must(w, err)
	}
}

// read returns an object of a kind from YAML, in the namespace of the Shoot.
func read[T client.Object](w *world, object T, text string) T {
	w.Helper()
	kit.Must(w, yaml.UnmarshalStrict([]byte(text), object))
	object.SetNamespace(w.shoot)
	return object
}

// ask annotates an object to request an operation, as gardenlet does.
func ask(object client.Object, operation string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[constants.AnnotationGardenerOperation] = operation
	annotations[constants.AnnotationGardenerTimestamp] = time.Now().UTC().Format(time.RFC3339Nano)
	object.SetAnnotations(annotations)
}

// create creates an object, as gardenlet does.
func (w *world) create(object client.Object) {
	w.Helper()
	ask(object, constants.OperationReconcile)
	kit.Must(w, w.Create(w.Context(), object))
}

// change changes an object, and requests an operation.
func (w *world) change(object client.Object, operation string, change func()) {
	w.Helper()
	kit.Change(w, w.Client, object, func() {
		change()
		ask(object, operation)
	})
}

// answered waits until the last requested operation has a type and a state.
func (w *world) answered(object extensionsv1alpha1.Object, kind gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("%s %T is %s", kind, object, state), func() string {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error()
		}
		status := object.GetExtensionStatus()
		last := status.LastOperation
		operation := object.GetAnnotations()[constants.AnnotationGardenerOperation]
		if last == nil || last.State != state || last.Type != kind || operation != "" || status.ObservedGeneration != object.GetGeneration() {
			return fmt.Sprintf("operation %q, last %+v, error %+v\n%s", operation, last, status.LastError, w.bundles(object))
		}
		return ""
	})
	if status := object.GetExtensionStatus(); state == gardencorev1beta1.LastOperationStateSucceeded && (status.LastError != nil || status.LastOperation.Progress != 100) {
		w.Errorf("%T: %+v, %+v", object, status.LastOperation, status.LastError)
	}
}

// bundles describes the ManagedResources of an object.
func (w *world) bundles(object client.Object) string {
	var all resourcesv1alpha1.ManagedResourceList
	if err := w.List(w.Context(), &all, client.MatchingLabels{flow.LabelOwner: string(object.GetUID())}); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, mr := range all.Items {
		fmt.Fprintf(&text, "%s, deleting %t:", mr.Name, mr.DeletionTimestamp != nil)
		for _, condition := range mr.Status.Conditions {
			fmt.Fprintf(&text, " %s=%s (%s: %.200s)", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
		text.WriteString("\n")
	}
	return text.String()
}

func (w *world) succeeded(object extensionsv1alpha1.Object, kind gardencorev1beta1.LastOperationType) {
	w.Helper()
	w.answered(object, kind, gardencorev1beta1.LastOperationStateSucceeded)
}

// failed waits until an operation has failed with a text and a code, which is not compared if it is empty.
func (w *world) failed(object extensionsv1alpha1.Object, code gardencorev1beta1.ErrorCode, text string) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("%T fails", object), func() string {
		kit.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		status := object.GetExtensionStatus()
		if status.LastError == nil || status.LastOperation.State != gardencorev1beta1.LastOperationStateError {
			return fmt.Sprintf("%+v", status.LastOperation)
		}
		if !strings.Contains(status.LastError.Description, text) || code != "" && !slices.Equal(status.LastError.Codes, []gardencorev1beta1.ErrorCode{code}) {
			return fmt.Sprintf("%+v", status.LastError)
		}
		return ""
	})
}

// gone deletes an object and waits until it no longer exists. Like the garbage collector of a resource-manager, it also
// deletes the Secrets that are no longer referenced. Otherwise, a new object with the same name and content would find them
// with the labels of this one.
func (w *world) gone(object client.Object) {
	w.Helper()
	uid := object.GetUID()
	kit.Must(w, client.IgnoreNotFound(w.Delete(w.Context(), object)))
	w.missing(object)
	for _, namespace := range []string{w.shoot, constants.GardenNamespace} {
		kit.Must(w, w.DeleteAllOf(w.Context(), &corev1.Secret{}, client.InNamespace(namespace), client.MatchingLabels{flow.LabelOwner: string(uid)}))
	}
}

// missing waits until an object does not exist.
func (w *world) missing(object client.Object) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("%T %s is deleted", object, object.GetName()), func() string {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v, %v", object.GetFinalizers(), err)
		}
		return ""
	})
}

// found waits until an object exists.
func (w *world) found(object client.Object, namespace, name string) {
	w.Helper()
	kit.EventuallyWithin(w, kit.WaitTimeout, fmt.Sprintf("%T %s exists", object, name), func() string {
		return kit.TextOf(w.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
	})
}

// migrated moves an object to another seed, which is the same cluster: the object is migrated, deleted, and created again
// with its state.
func migrated[T extensionsv1alpha1.Object](w *world, object T, fresh func() T) T {
	w.Helper()
	w.change(object, constants.OperationMigrate, func() {})
	w.succeeded(object, gardencorev1beta1.LastOperationTypeMigrate)
	state := object.GetExtensionStatus().State
	w.gone(object)
	again := fresh()
	ask(again, constants.OperationWaitForState)
	kit.Must(w, w.Create(w.Context(), again))
	again.GetExtensionStatus().State = state
	kit.WriteStatus(w, w, again)
	w.change(again, constants.OperationRestore, func() {})
	w.succeeded(again, gardencorev1beta1.LastOperationTypeRestore)
	return again
}

// rest waits until provider-local no longer sends requests.
func (w *world) rest() {
	w.Helper()
	kit.Quiet(w, w.requests)
}
