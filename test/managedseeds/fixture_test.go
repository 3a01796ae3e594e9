package managedseeds

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

var (
	gardens  garden.Shared
	clusters = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1, AvailableAtOnce: true}}
	prepare  sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(gardens.Stop(clusters.Run(m)))
}

// fixture has clients of the garden and of the cluster.
type fixture struct {
	*testing.T
	plane   *garden.Garden
	cluster *controlplane.ControlPlane
	scheme  *runtime.Scheme
	garden  client.Client
	target  client.Client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, plane: gardens.Get(t), cluster: clusters.Get(t), scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, served.AddToScheme, resourcesv1alpha1.AddToScheme} {
		kit.Must(t, add(f.scheme))
	}
	var err error
	f.garden, err = client.New(f.plane.Config(), client.Options{Scheme: f.scheme})
	kit.Must(t, err)
	f.target, err = client.New(f.cluster.Config(), client.Options{Scheme: f.scheme})
	kit.Must(t, err)
	prepare.Do(func() {
		kit.DefineManagedResources(t, f.plane.Config())
		kit.DefineManagedResources(t, f.cluster.Config())
		kit.Must(t, f.garden.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}))
		project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
		project.Spec.Namespace = ptr.To("garden")
		// Shoots in namespace garden have it.
		project.Spec.Tolerations = &corev1beta1.ProjectTolerations{Whitelist: []corev1beta1.Toleration{{Key: "seed.gardener.cloud/protected"}}}
		kit.Must(t, f.garden.Create(t.Context(), project))
	})
	return f
}

// runs runs a resource-manager from one cluster to another.
func (f *fixture) runs(manager inprocess.ResourceManager) (stop func()) {
	f.Helper()
	manager.Scheme = f.scheme
	parts, err := manager.New(f.Context())
	kit.Must(f, err)
	return kit.Run(f, parts.Manager)
}

// cached returns the cache of the garden of a gardenlet.
func (f *fixture) cached() cluster.Cluster {
	f.Helper()
	cached, err := cluster.New(f.plane.Config(), func(o *cluster.Options) { o.Scheme = f.scheme })
	kit.Must(f, err)
	return cached
}

// config is the configuration of the gardenlet that deploys others.
func config() *gardenletv1alpha1.GardenletConfiguration {
	c := &gardenletv1alpha1.GardenletConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: gardenletv1alpha1.APIVersion, Kind: gardenletv1alpha1.Kind}}
	gardenletv1alpha1.SetDefaults(c)
	return c
}

// read reads an example.
func read[T any](t *testing.T, group, name string) *T {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	content, err := os.ReadFile(filepath.Join(root, "examples", "fleet", group, name+".yaml"))
	kit.Must(t, err)
	object := new(T)
	kit.Must(t, yaml.Unmarshal(content, object))
	return object
}

// create creates an object in the garden. The returned function deletes it with its finalizers.
func (f *fixture) create(object client.Object) (remove func()) {
	f.Helper()
	kit.Must(f, f.garden.Create(f.Context(), object))
	return func() { f.remove(object) }
}

// remove deletes an object of the garden with its finalizers.
func (f *fixture) remove(object client.Object) {
	f.Helper()
	kit.Eventually(f, "the object is gone", func() string {
		err := f.garden.Get(f.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		object.SetFinalizers(nil)
		annotations := map[string]string{"confirmation.gardener.cloud/deletion": "true"}
		object.SetAnnotations(annotations)
		if err := f.garden.Update(f.Context(), object); err != nil {
			return err.Error()
		}
		return kit.TextOf(client.IgnoreNotFound(f.garden.Delete(f.Context(), object))) + "it is being deleted"
	})
}

// seed returns the Seed that a gardenlet registers.
func (f *fixture) seed(name string, hosts ...string) *corev1beta1.Seed {
	f.Helper()
	seed := read[corev1beta1.Seed](f.T, "core", "seed")
	seed.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: map[string]string{}}
	for _, host := range append(hosts, name) {
		seed.Labels["name.seed.gardener.cloud/"+host] = "true"
	}
	return seed
}

// deployment returns the Deployment of the gardenlet, and why it is not what a check wants.
func (f *fixture) deployment(check func(*appsv1.Deployment) string) string {
	deployment := &appsv1.Deployment{}
	if err := f.target.Get(f.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet"}, deployment); err != nil {
		return err.Error()
	}
	return check(deployment)
}

// gone returns why an object still exists.
func (f *fixture) gone(in client.Client, object client.Object) string {
	err := in.Get(f.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%T %s exists", object, object.GetName())
}

// secret returns a Secret of the cluster of the gardenlet.
func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
}

// describe describes a condition.
func describe(conditions []corev1beta1.Condition, kind corev1beta1.ConditionType) string {
	condition := corev1beta1.FindCondition(conditions, kind)
	if condition == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s: %s", condition.Status, condition.Reason, condition.Message)
}
