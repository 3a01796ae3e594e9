package etcd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd"
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

const name = "etcd-main"

// world is a namespace with an Etcd.
type world struct {
	*testing.T
	cp        *controlplane.ControlPlane
	client    client.Client
	scheme    *runtime.Scheme
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, cp: shared.Get(t), scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme, druidv1alpha1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		kit.Must(t, add(w.scheme))
	}
	kit.DefineManagedResources(t, w.cp.Config())
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	_, err = envtest.InstallCRDs(w.cp.Config(), envtest.CRDInstallOptions{MaxTime: kit.WaitTimeout, Paths: []string{filepath.Join(root, "config", "crd", "druid")}})
	kit.Must(t, err)
	w.client, err = client.New(w.cp.Config(), client.Options{Scheme: w.scheme})
	kit.Must(t, err)
	w.namespace = kit.NewNamespace(t, w.client, "etcd", nil)
	return w
}

// startOperator runs the operator and records its requests, until the returned function is called.
func (w *world) startOperator(version string) (requests *kit.Requests, stop func()) {
	w.Helper()
	requests = &kit.Requests{}
	config := w.cp.Config()
	config.Wrap(requests.Wrap)
	options := kit.ManagerOptions(w.scheme)
	options.Cache = cache.Options{
		NewInformer: rewatch.NewInformer, DefaultNamespaces: map[string]cache.Config{w.namespace: {}}, ByObject: etcd.CacheOptions(),
	}
	mgr, err := manager.New(config, options)
	kit.Must(w, err)
	operator, err := etcd.New(w.Context(), mgr, mgr.GetEventRecorder("etcd-operator"), etcd.Options{
		Class: "seed", MemberImage: "registry.example.org/etcd-member:v1", Version: version, Workers: 1, Clock: clock.RealClock{},
	})
	kit.Must(w, err)
	kit.Must(w, operator.AddToManager(mgr))
	return requests, kit.Run(w, mgr)
}

func certificatesOf(authority, server string) *druidv1alpha1.TLSConfig {
	tls := &druidv1alpha1.TLSConfig{ServerTLSSecretRef: corev1.SecretReference{Name: server}}
	tls.TLSCASecretRef.Name = authority
	return tls
}

// declare creates the Etcd.
func (w *world) declare(change func(*druidv1alpha1.Etcd)) {
	w.Helper()
	e := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: druidv1alpha1.EtcdSpec{
		Replicas: 1, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"role": "main"}}, Labels: map[string]string{"role": "main"},
		VolumeClaimTemplate: ptr.To("main-etcd"),
	}}
	if change != nil {
		change(e)
	}
	kit.Must(w, w.client.Create(w.Context(), e))
}

// change changes the Etcd and requests its reconciliation.
func (w *world) change(change func(*druidv1alpha1.Etcd)) {
	w.Helper()
	e := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	kit.Change(w, w.client, e, func() {
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, etcd.AnnotationOperation, etcd.OperationReconcile)
		change(e)
	})
}

func (w *world) get(object client.Object, name string) bool {
	w.Helper()
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, object)
	if !apierrors.IsNotFound(err) {
		kit.Must(w, err)
	}
	return err == nil
}

func (w *world) etcd() *druidv1alpha1.Etcd {
	w.Helper()
	e := &druidv1alpha1.Etcd{}
	if !w.get(e, name) {
		return nil
	}
	return e
}

// condition returns a condition of the Etcd as "<status> <reason>: <message>".
func (w *world) condition(kind druidv1alpha1.ConditionType) string {
	w.Helper()
	for _, condition := range w.etcd().Status.Conditions {
		if condition.Type == kind {
			return string(condition.Status) + " " + condition.Reason + ": " + condition.Message
		}
	}
	return "absent"
}

// eventually waits until a condition of the Etcd starts with a text.
func (w *world) eventually(kind druidv1alpha1.ConditionType, begin string) {
	w.Helper()
	kit.Eventually(w, "the condition "+string(kind)+" is "+begin, func() string {
		if text := w.condition(kind); len(text) < len(begin) || text[:len(begin)] != begin {
			return text
		}
		return ""
	})
}
