package managedseeds

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/managedseed"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// seedConfig is the configuration of a gardenlet.
const seedConfig = `{"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
"seedConfig": {"spec": {"provider": {"type": "local", "region": "here"}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16", "nodes": "10.3.0.0/16"},
"ingress": {"domain": "ingress.blue.example.org", "controller": {"kind": "nginx"}}, "settings": {"verticalPodAutoscaler": {"enabled": false}},
"dns": {"provider": {"type": "local", "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "dns"}}, "internal": {"type": "local", "domain": "internal.example.org", "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "dns"}}}}}}`

// host is the Seed on which the Shoot runs.
const host, technicalID = "host", "shoot--garden--blue"

// deploys runs the controller of ManagedSeeds in the gardenlet of Seed host, and the resource-manager of the Shoot.
func (f *fixture) deploys() (stop func()) {
	f.Helper()
	mgr, err := manager.New(f.plane.Config(), kit.ManagerOptions(f.scheme))
	kit.Must(f, err)
	cached := f.cached()
	kit.Must(f, mgr.Add(cached))
	kit.Must(f, managedseed.AddToManager(mgr, cached, f.garden, managedseed.Options{
		SeedName: host, Version: "v1", Config: config(), Garden: clientcmdapi.Cluster{Server: "https://garden.example.org"},
		Image: "registry.example.org/gardenlet:v1", Recorder: events.NewFakeRecorder(1000), Clock: clock.RealClock{},
		Connect: func(context.Context, *corev1beta1.Shoot) (client.Client, error) { return f.target, nil },
	}))
	first, second := kit.Run(f, mgr), f.runs(inprocess.ResourceManager{Source: f.plane.Config(), Target: f.cluster.Config(), Class: resourcesv1alpha1.DefaultClass})
	return func() {
		first()
		second()
	}
}

// managed is the life of one ManagedSeed.
type managed struct {
	*fixture
	object *v1alpha1.ManagedSeed
	shoot  *corev1beta1.Shoot
}

func (m *managed) condition(kind corev1beta1.ConditionType, want string) {
	m.Helper()
	kit.Eventually(m, string(kind)+" is "+want, func() string {
		if err := m.garden.Get(m.Context(), client.ObjectKeyFromObject(m.object), m.object); err != nil {
			return err.Error()
		}
		if got := describe(m.object.Status.Conditions, kind); !strings.HasPrefix(got, want) {
			return got
		}
		return ""
	})
}

// reconciled sets the last operation of the Shoot.
func (m *managed) reconciled(state corev1beta1.LastOperationState) {
	m.Helper()
	kit.Eventually(m, "the status of the Shoot is written", func() string {
		if err := m.garden.Get(m.Context(), client.ObjectKeyFromObject(m.shoot), m.shoot); err != nil {
			return err.Error()
		}
		m.shoot.Status.TechnicalID, m.shoot.Status.ObservedGeneration = technicalID, m.shoot.Generation
		m.shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: state, LastUpdateTime: metav1.Now()}
		return kit.TextOf(m.garden.Status().Update(m.Context(), m.shoot))
	})
}

// bootstraps does what the gardenlet does with the kubeconfig for its first certificate: it stores another one, and deletes the first.
func (m *managed) bootstraps(content string) {
	m.Helper()
	offered := secret("gardenlet-kubeconfig-bootstrap")
	kit.Eventually(m, "the gardenlet has a bootstrap kubeconfig, and no other", func() string {
		if err := m.target.Get(m.Context(), client.ObjectKeyFromObject(offered), offered); err != nil {
			kit.Must(m, m.garden.Get(m.Context(), client.ObjectKeyFromObject(m.object), m.object))
			return err.Error() + "; SeedRegistered is " + describe(m.object.Status.Conditions, v1alpha1.SeedRegistered)
		}
		if !strings.Contains(string(offered.Data["kubeconfig"]), "https://garden.example.org") {
			return "it is not one of the garden"
		}
		return m.gone(m.target, secret("gardenlet-kubeconfig"))
	})
	own := secret("gardenlet-kubeconfig")
	own.Data = map[string][]byte{"kubeconfig": []byte(content)}
	kit.Must(m, m.target.Create(m.Context(), own))
	kit.Must(m, client.IgnoreNotFound(m.target.Delete(m.Context(), offered)))
}

// TestManagedSeed is the life of a ManagedSeed: it waits for the Shoot, deploys the gardenlet, changes it, renews its credentials, is kept while
// its Seed is in use, and deletes the Seed, the gardenlet, its credentials and its namespace, in this order.
func TestManagedSeed(t *testing.T) {
	f := newFixture(t)
	defer f.deploys()()
	kit.Must(t, client.IgnoreAlreadyExists(f.garden.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: technicalID}})))
	shoot := read[corev1beta1.Shoot](t, "core", "shoot")
	shoot.ObjectMeta = metav1.ObjectMeta{Namespace: "garden", Name: "blue"}
	shoot.Spec.SeedName, shoot.Spec.DNS = ptr.To(host), &corev1beta1.DNS{Domain: ptr.To("blue.example.org")}
	defer f.create(shoot)()
	object := read[v1alpha1.ManagedSeed](t, "seedmanagement", "managedseed")
	object.Labels = map[string]string{"name.seed.gardener.cloud/" + host: "true"}
	object.Spec.Gardenlet.Config.Raw = []byte(seedConfig)
	defer f.create(object)()
	m := &managed{f, object, shoot}

	m.reconciled(corev1beta1.LastOperationStateProcessing)
	m.condition(v1alpha1.ManagedSeedShootReconciled, "False/Reconciling")
	m.reconciled(corev1beta1.LastOperationStateSucceeded)
	m.condition(v1alpha1.ManagedSeedShootReconciled, "True/Reconciled")
	m.bootstraps("first")
	m.condition(v1alpha1.SeedRegistered, "Progressing/Reconciling: The gardenlet runs, and has not registered its Seed yet")
	seed := f.seed("blue", host)
	seed.Finalizers = []string{"gardener"}
	defer f.create(seed)()
	m.condition(v1alpha1.SeedRegistered, "True/Reconciled")
	m.changes()
	m.renews()
	m.deleted(seed)
}

// changes changes the Deployment of the gardenlet.
func (m *managed) changes() {
	m.Helper()
	kit.Change(m, m.garden, m.object, func() { m.object.Spec.Gardenlet.Deployment.ReplicaCount = ptr.To[int32](1) })
	kit.Eventually(m, "the gardenlet has one replica, the image of the ManagedSeed, and the public address of its API server", func() string {
		return m.deployment(func(deployment *appsv1.Deployment) string {
			container := deployment.Spec.Template.Spec.Containers[0]
			if ptr.Deref(deployment.Spec.Replicas, 0) != 1 {
				return "there are more"
			}
			for _, variable := range container.Env {
				if variable.Name == "KUBERNETES_SERVICE_HOST" && variable.Value == "api.blue.example.org" {
					return strings.TrimPrefix(container.Image, "registry.example.org/gardenlet:1.0.0")
				}
			}
			return "no address"
		})
	})
	m.condition(v1alpha1.SeedRegistered, "True/Reconciled")
}

// renews requests a new kubeconfig of the gardenlet.
func (m *managed) renews() {
	m.Helper()
	kit.Change(m, m.garden, m.object, func() {
		metav1.SetMetaDataAnnotation(&m.object.ObjectMeta, "gardener.cloud/operation", "renew-kubeconfig")
	})
	m.bootstraps("second")
	kit.Eventually(m, "the operation is removed", func() string {
		// In a fleet, a change of the Seed reports the new certificate.
		kit.Change(m, m.garden, m.object, func() { metav1.SetMetaDataAnnotation(&m.object.ObjectMeta, "example.org/wake", "true") })
		if m.object.Annotations["gardener.cloud/operation"] != "" || m.object.Annotations["gardenlet.gardener.cloud/replaces-kubeconfig"] != "" {
			return "it is there"
		}
		return ""
	})
}

// deleted deletes the ManagedSeed, first while its Seed is in use.
func (m *managed) deleted(seed *corev1beta1.Seed) {
	m.Helper()
	user := read[corev1beta1.Shoot](m.T, "core", "shoot")
	user.ObjectMeta = metav1.ObjectMeta{Namespace: "garden", Name: "user"}
	user.Spec.SeedName = ptr.To(seed.Name)
	defer m.create(user)()
	if err := m.garden.Delete(m.Context(), m.object); err == nil || !strings.Contains(err.Error(), "garden/user") {
		m.Errorf("the ManagedSeed of a Seed in use: %v", err)
	}
	m.remove(user)
	kit.Eventually(m, "the ManagedSeed can be deleted", func() string { return kit.TextOf(m.garden.Delete(m.Context(), m.object)) })
	m.condition(v1alpha1.SeedRegistered, "False/Deleting: Seed blue is being deleted by its gardenlet")
	if why := m.deployment(func(*appsv1.Deployment) string { return "" }); why != "" {
		m.Errorf("the gardenlet of a Seed that is being deleted: %s", why)
	}
	kit.Change(m, m.garden, seed, func() { seed.Finalizers = nil })
	kit.Eventually(m, "the ManagedSeed is gone", func() string { return m.gone(m.garden, m.object) })
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet"}}, secret("gardenlet-kubeconfig"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}},
	} {
		kit.Eventually(m, "it is gone", func() string { return m.gone(m.target, object) })
	}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: graph.TokenSecret("garden", "blue")}}
	kit.Eventually(m, "the bootstrap token is gone", func() string { return m.gone(m.garden, token) })
}
