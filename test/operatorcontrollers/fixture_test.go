package operatorcontrollers

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

var (
	shared garden.Shared
	// define creates the CustomResourceDefinitions once.
	define sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// fixture is the garden with the definitions of the operator.
type fixture struct {
	*testing.T
	garden *garden.Garden
	scheme *runtime.Scheme
	client client.Client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, garden: shared.Get(t), scheme: newScheme(t)}
	define.Do(func() {
		root, err := controlplane.RepositoryRoot()
		kit.Must(t, err)
		crd := filepath.Join(root, "config", "crd")
		_, err = envtest.InstallCRDs(f.garden.Config(), envtest.CRDInstallOptions{
			Paths: []string{crd, filepath.Join(crd, "operator"), filepath.Join(crd, "extensions")}, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout,
		})
		kit.Must(t, err)
	})
	var err error
	f.client, err = client.New(f.garden.Config(), client.Options{Scheme: f.scheme})
	kit.Must(t, err)
	err = f.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
	if !apierrors.IsAlreadyExists(err) {
		kit.Must(t, err)
	}
	return f
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, served.AddToScheme, operatorv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	} {
		kit.Must(t, add(scheme))
	}
	return scheme
}

// example returns an example of the operator's kinds.
func example[T any](t *testing.T, name string) *T {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	content, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "operator", name+".yaml"))
	kit.Must(t, err)
	object := new(T)
	kit.Must(t, yaml.Unmarshal(content, object))
	return object
}

// remove deletes an object with its finalizers, and waits until it is gone.
func (f *fixture) remove(object client.Object) {
	f.Helper()
	kit.Eventually(f, "the object is gone", func() string {
		err := f.client.Get(f.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		object.SetFinalizers(nil)
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["confirmation.gardener.cloud/deletion"] = "true"
		object.SetAnnotations(annotations)
		if err := f.client.Update(f.Context(), object); err != nil {
			return err.Error()
		}
		return kit.TextOf(f.client.Delete(f.Context(), object)) + "it is being deleted"
	})
}
