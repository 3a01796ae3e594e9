package managedseeds

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/selfupgrade"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/helmchart/embedded"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// chart returns the archive of the chart of gardenlet. With a template, it has this template, too.
func chart(t *testing.T, template string) []byte {
	t.Helper()
	loaded, err := embedded.Load("gardenlet")
	kit.Must(t, err)
	if template != "" {
		loaded.Templates = append(loaded.Templates, &chartcommon.File{Name: "templates/more.yaml", Data: []byte(template)})
	}
	path, err := chartutil.Save(loaded, t.TempDir())
	kit.Must(t, err)
	content, err := os.ReadFile(path)
	kit.Must(t, err)
	return content
}

// registry is what a registry has: a chart, or an error.
type registry struct{ chart atomic.Pointer[[]byte] }

func (r *registry) pull(context.Context, *gardencorev1.OCIRepository, *corev1.Secret, *corev1.Secret) ([]byte, error) {
	if chart := r.chart.Load(); chart != nil {
		return *chart, nil
	}
	return nil, errors.New("the registry does not answer")
}

func (r *registry) set(chart []byte) { r.chart.Store(&chart) }

// described is the life of one Gardenlet.
type described struct {
	*fixture
	object *v1alpha1.Gardenlet
}

// gardenlet returns a Gardenlet.
func (f *fixture) gardenlet(name string) *described {
	f.Helper()
	object := read[v1alpha1.Gardenlet](f.T, "seedmanagement", "gardenlet")
	object.ObjectMeta = metav1.ObjectMeta{Namespace: "garden", Name: name}
	object.Spec.KubeconfigSecretRef = nil
	object.Spec.Config.Raw = []byte(strings.Replace(seedConfig, "blue", name, 1))
	return &described{f, object}
}

func (d *described) condition(kind corev1beta1.ConditionType, want string) {
	d.Helper()
	kit.Eventually(d, string(kind)+" is "+want, func() string {
		if err := d.garden.Get(d.Context(), client.ObjectKeyFromObject(d.object), d.object); err != nil {
			return err.Error()
		}
		if got := describe(d.object.Status.Conditions, kind); !strings.HasPrefix(got, want) {
			return got
		}
		return ""
	})
}

// wakes makes the controllers look at the Gardenlet again, as they do from time to time.
func (d *described) wakes(value string) {
	d.Helper()
	kit.Change(d, d.garden, d.object, func() { metav1.SetMetaDataAnnotation(&d.object.ObjectMeta, "example.org/wake", value) })
}

// clusterRole is the name of the ClusterRole of gardenlets.
const clusterRole = "gardener.cloud:system:gardenlet"

// inCluster creates the namespace garden in the cluster. The returned function deletes it.
func (f *fixture) inCluster() (remove func()) {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
	// The flow of a Seed has created it.
	priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gardener-system-critical"}, Value: 999998950}
	for _, object := range []client.Object{namespace, priority} {
		kit.Must(f, client.IgnoreAlreadyExists(f.target.Create(f.Context(), object)))
	}
	return func() {
		// A ManagedResource that keeps its objects leaves them to the next test.
		for _, object := range []client.Object{
			namespace, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: clusterRole}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: clusterRole}},
		} {
			kit.Must(f, client.IgnoreNotFound(f.target.Delete(f.Context(), object)))
		}
		kit.Eventually(f, "the namespace is gone", func() string { return f.gone(f.target, namespace) })
	}
}

// TestSelfUpgrade is the life of the Gardenlet of a gardenlet that runs: a chart that cannot be pulled, one that can, a change, a broken chart,
// and the deletion of the Gardenlet. The gardenlet stays after each of the last two.
func TestSelfUpgrade(t *testing.T) {
	f := newFixture(t)
	defer f.inCluster()()
	mgr, err := manager.New(f.cluster.Config(), kit.ManagerOptions(f.scheme))
	kit.Must(t, err)
	cached, charts := f.cached(), &registry{}
	kit.Must(t, mgr.Add(cached))
	issuer := gardenletdeployer.Issuer{Garden: f.garden, FieldManager: "test", Random: rand.Reader, Clock: clock.RealClock{}}
	kit.Must(t, selfupgrade.AddToManager(mgr, cached, selfupgrade.Options{
		SeedName: "local", Version: "v1", KubeVersion: func(context.Context) (string, error) { return "1.33.0", nil }, Config: config(), Recorder: events.NewFakeRecorder(1000),
		Clock: clock.RealClock{}, Issuer: issuer, Pull: charts.pull,
	}))
	defer kit.Run(f, mgr)()
	stop := f.runs(inprocess.ResourceManager{Source: f.cluster.Config(), Target: f.cluster.Config(), Class: "seed"})
	defer stop()
	own := secret("gardenlet-kubeconfig")
	own.Data = map[string][]byte{"kubeconfig": []byte("own")}
	kit.Must(t, f.target.Create(t.Context(), own))
	defer f.create(f.seed("local"))()
	d := f.gardenlet("local")
	defer f.create(d.object)()

	d.condition(v1alpha1.GardenletReconciled, "False/ReconcileError: pull the chart of the gardenlet: the registry does not answer")
	charts.set(chart(t, ""))
	d.condition(v1alpha1.GardenletReconciled, "True/Reconciled")
	kit.Change(t, f.garden, d.object, func() { d.object.Spec.Deployment.ReplicaCount = ptr.To[int32](2) })
	replicas := func() string {
		return f.deployment(func(deployment *appsv1.Deployment) string {
			if ptr.Deref(deployment.Spec.Replicas, 0) != 2 {
				return "not two replicas"
			}
			return ""
		})
	}
	kit.Eventually(t, "the gardenlet has two replicas", replicas)
	d.condition(v1alpha1.GardenletReconciled, "True/Reconciled")

	charts.set(chart(t, `{{ fail "broken" }}`))
	d.wakes("broken")
	d.condition(v1alpha1.GardenletReconciled, "False/ReconcileError: render the chart of gardenlet")
	if why := replicas(); why != "" {
		t.Errorf("after a broken chart: %s", why)
	}
	f.remove(d.object)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet"}}
	kit.Must(t, f.target.Get(t.Context(), client.ObjectKeyFromObject(mr), mr))
	if why := replicas(); why != "" {
		t.Errorf("after the deletion of the Gardenlet: %s", why)
	}
	stop()
	kit.Change(t, f.target, mr, func() { mr.Finalizers = nil })
	kit.Must(t, client.IgnoreNotFound(f.target.Delete(t.Context(), mr)))
}
