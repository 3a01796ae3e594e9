// Package extension tests the library for authors of extensions on a real API server.
package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// world is a cluster for extensions.
type world struct {
	*testing.T
	cp     *controlplane.ControlPlane
	scheme *runtime.Scheme
	client client.Client
	root   string
	// cached reads like the controllers of the latest manager.
	cached client.Reader
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, cp: shared.Get(t), scheme: runtime.NewScheme()}
	kit.Must(t, clientgoscheme.AddToScheme(w.scheme))
	kit.Must(t, extension.AddToScheme(w.scheme))
	kit.DefineManagedResources(t, w.cp.Config())
	var err error
	w.root, err = controlplane.RepositoryRoot()
	kit.Must(t, err)
	_, err = envtest.InstallCRDs(w.cp.Config(), envtest.CRDInstallOptions{
		MaxTime: kit.WaitTimeout, Paths: []string{filepath.Join(w.root, "config", "crd", "extensions")}, ErrorIfPathMissing: true,
	})
	kit.Must(t, err)
	w.client, err = client.New(w.cp.Config(), client.Options{Scheme: w.scheme})
	kit.Must(t, err)
	return w
}

// manager returns a manager and the requests that it sends.
func (w *world) manager() (manager.Manager, *kit.Requests) {
	w.Helper()
	requests := &kit.Requests{}
	config := w.cp.Config()
	config.Wrap(requests.Wrap)
	config.QPS = -1
	options := kit.ManagerOptions(w.scheme)
	options.Cache.NewInformer = rewatch.NewInformer
	mgr, err := manager.New(config, options)
	kit.Must(w, err)
	w.cached = mgr.GetClient()
	return mgr, requests
}

// quickly returns a rate limiter with short delays, so that tests do not wait for retries.
func quickly() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, time.Second)
}

// settings control the actuator. They are the provider configuration of an object.
type settings struct {
	Text string                `json:"text,omitempty"`
	Fail string                `json:"fail,omitempty"`
	Code corev1beta1.ErrorCode `json:"code,omitempty"`
	Wait string                `json:"wait,omitempty"`
}

// calls records the calls of actuators by kind, namespace and name of the object.
type calls struct {
	mu   sync.Mutex
	made map[string][]string
}

func (c *calls) note(method string, object extensionsv1alpha1.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string][]string{}
	}
	key := fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
	c.made[key] = append(c.made[key], method)
}

func (c *calls) of(object extensionsv1alpha1.Object) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.made[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))])
}

// actuator acts according to the provider configuration of the object.
type actuator[T extensionsv1alpha1.Object] struct{ *calls }

func (a actuator[T]) act(method string, object T, cluster *extension.Cluster) (extension.Result, error) {
	a.note(method, object)
	var set settings
	if raw := object.GetExtensionSpec().ProviderConfig; raw != nil {
		if err := json.Unmarshal(raw.Raw, &set); err != nil {
			return extension.Result{}, err
		}
	}
	if _, bucket := any(object).(*extensionsv1alpha1.BackupBucket); !bucket && cluster == nil && method != "Delete" {
		return extension.Result{}, errors.New("the Cluster does not exist")
	}
	if err := extension.SetProviderStatus(object, map[string]string{"text": set.Text, "by": method}); err != nil {
		return extension.Result{}, err
	}
	switch {
	case set.Fail != "" && set.Code != "":
		return extension.Result{}, extension.WithCodes(errors.New(set.Fail), set.Code)
	case set.Fail != "":
		return extension.Result{}, errors.New(set.Fail)
	case set.Wait != "":
		return extension.Wait(0, "%s", set.Wait), nil
	}
	return extension.Done(), nil
}

func (a actuator[T]) Reconcile(_ context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	if err := extension.SetState(object, map[string]string{"remember": "this"}); err != nil {
		return extension.Result{}, err
	}
	return a.act("Reconcile", object, cluster)
}

func (a actuator[T]) Delete(_ context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	return a.act("Delete", object, cluster)
}

func (a actuator[T]) ForceDelete(_ context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	return a.act("ForceDelete", object, cluster)
}

func (a actuator[T]) Migrate(_ context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	return a.act("Migrate", object, cluster)
}

func (a actuator[T]) Restore(_ context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	if state := object.GetExtensionStatus().State; state == nil || !strings.Contains(string(state.Raw), "from elsewhere") {
		return extension.Result{}, errors.New("the state is missing")
	}
	return a.act("Restore", object, cluster)
}

// read reads the example of a kind into an object of a Shoot of this test.
func (w *world) read(file, shoot string, object client.Object) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, "examples", "fleet", "extensions", file+".yaml"))
	kit.Must(w, err)
	kit.Must(w, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "shoot--dev--blue", shoot)), object))
}

// shoot creates the namespace and the Cluster of a Shoot.
func (w *world) shoot(name string, labels map[string]string) {
	w.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	cluster := &extensionsv1alpha1.Cluster{}
	w.read("cluster", name, cluster)
	w.create(cluster)
}

func (w *world) create(object client.Object) {
	w.Helper()
	if err := w.client.Create(w.Context(), object); !apierrors.IsAlreadyExists(err) {
		kit.Must(w, err)
	}
}

// changeShoot changes the Shoot in a Cluster.
func (w *world) changeShoot(name string, change func(*corev1beta1.Shoot)) {
	w.Helper()
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	kit.Change(w, w.client, cluster, func() {
		decoded, err := extension.DecodeCluster(cluster)
		kit.Must(w, err)
		change(decoded.Shoot)
		raw, err := json.Marshal(decoded.Shoot)
		kit.Must(w, err)
		cluster.Spec.Shoot.Raw = raw
	})
}

// configure sets the actuator's settings without requesting an operation.
func configure(object extensionsv1alpha1.Object, set settings) {
	raw, _ := json.Marshal(set) // strings can always be encoded
	object.GetExtensionSpec().ProviderConfig = &runtime.RawExtension{Raw: raw}
}

// ask requests an operation with a configuration.
func (w *world) ask(object extensionsv1alpha1.Object, operation string, set settings) {
	w.Helper()
	kit.Change(w, w.client, object, func() {
		configure(object, set)
		flow.AskExtension(object, operation, time.Now())
	})
}

// eventually waits until the last operation is "<type> <state>", no operation is requested and the generation was observed.
func (w *world) eventually(object extensionsv1alpha1.Object, want string) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("%T %s reports %s", object, object.GetName(), want), func() string {
		kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		status := object.GetExtensionStatus()
		last := status.LastOperation
		if last == nil || string(last.Type)+" "+string(last.State) != want || status.ObservedGeneration != object.GetGeneration() {
			return fmt.Sprintf("last operation %+v, last error %+v", last, status.LastError)
		}
		if last.State == corev1beta1.LastOperationStateSucceeded && object.GetAnnotations()[constants.AnnotationGardenerOperation] != "" {
			return "the operation is still requested"
		}
		return ""
	})
}

func (w *world) eventuallyGone(object client.Object) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("%T %s is deleted", object, object.GetName()), func() string {
		err := w.client.Get(w.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v, finalizers %v", err, object.GetFinalizers())
	})
}

// quiet waits until no requests have been sent for some time.
func (w *world) quiet(requests *kit.Requests) {
	w.Helper()
	kit.Quiet(w, requests)
}
