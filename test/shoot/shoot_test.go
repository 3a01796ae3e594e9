package shoot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestShoot runs a Shoot through its life cycle.
func TestShoot(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	checkRights := w.restrict()
	toGarden, toSeed, stop := w.gardenlet()

	w.declare()
	server := w.startServer()
	manager := w.startManager()
	shoot := w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	w.checkStatus(shoot)
	controllers := w.startControllers()
	w.checkCluster()
	w.checkConditions(corev1beta1.ConditionTrue, "HealthzRequestSucceeded")
	quiet(t, toGarden, toSeed)
	t.Logf("created with %d requests to the seed, %d of them writes, and %d writes to the garden", len(toSeed.Single()), len(writes(toSeed)), len(writes(toGarden)))
	toGarden.Forget()
	toSeed.Forget()
	quiet(t, toGarden, toSeed)
	if rest := slices.Concat(toGarden.All(), toSeed.All()); len(rest) > 0 {
		t.Errorf("requests at rest: %v", rest)
	}
	stop()

	toGarden, toSeed, stop = w.gardenlet()
	kit.EventuallyTrue(t, "the Shoot is watched", func() bool { return toSeed.Watched("/managedresources") && toGarden.Watched("/shoots") })
	quiet(t, toGarden, toSeed)
	if sent := slices.Concat(writes(toGarden), writes(toSeed)); len(sent) > 0 {
		t.Errorf("a restart wrote %v", sent)
	}

	toSeed.Forget()
	shoot = w.get()
	kit.Change(t, w.garden, shoot, func() { shoot.Spec.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight = ptr.To[int32](333) })
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
	quiet(t, toGarden, toSeed)
	w.checkFlagChange(writes(toSeed))

	w.hibernate(func() {
		manager.Stop()
		kit.Must(t, controllers.Stop(0))
	}, func() { kit.Must(t, server.Stop(0)) })
	kit.Must(t, w.admin().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "mine"}, &corev1.ConfigMap{})) // the data still exist
	checkRights()
	w.deletion()
	stop()
}

// declare creates a Shoot as a user.
func (w *world) declare(changes ...func(*corev1beta1.Shoot)) {
	w.Helper()
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shootName},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local", SeedName: ptr.To(seedName),
			Kubernetes: corev1beta1.Kubernetes{Version: version}, Provider: corev1beta1.Provider{Type: "local"},
		},
	}
	for _, change := range changes {
		change(shoot)
	}
	kit.Must(w, w.garden.Create(w.Context(), shoot))
}

func (w *world) checkStatus(shoot *corev1beta1.Shoot) {
	w.Helper()
	status := shoot.Status
	if status.TechnicalID != technical || status.UID != shoot.UID || status.Gardener != identity || ptr.Deref(status.SeedName, "") != seedName || status.IsHibernated ||
		!strings.HasPrefix(ptr.Deref(status.ClusterIdentity, ""), technical+"-"+string(shoot.UID)+"-") || status.RetryCycleStartTime != nil || len(status.LastErrors) > 0 {
		w.Errorf("the status is %+v", status)
	}
	if len(status.AdvertisedAddresses) != 2 || status.AdvertisedAddresses[0].URL != "https://api.one.dev.internal.example.org" {
		w.Errorf("the addresses are %+v", status.AdvertisedAddresses)
	}
	if status.Credentials == nil || status.Credentials.EncryptionAtRest == nil || status.Credentials.EncryptionAtRest.Provider.Type != corev1beta1.EncryptionProviderTypeAESCBC {
		w.Errorf("the credentials are %+v", status.Credentials)
	}
	if !slices.Contains(shoot.Finalizers, constants.GardenerName) {
		w.Errorf("the finalizers are %v", shoot.Finalizers)
	}
}

// checkConditions waits until all conditions have a status, and that of the API server has a reason.
func (w *world) checkConditions(status corev1beta1.ConditionStatus, reason string) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the conditions are "+string(status)+", "+reason, func() string {
		conditions := w.get().Status.Conditions
		if len(conditions) != 4 || conditions[0].Type != corev1beta1.ShootAPIServerAvailable || conditions[0].Reason != reason ||
			slices.ContainsFunc(conditions, func(condition corev1beta1.Condition) bool { return condition.Status != status }) {
			return fmt.Sprintf("%+v", conditions)
		}
		return ""
	})
}

// checkCluster checks as an administrator that the flow's objects exist in the cluster and that the controllers work.
func (w *world) checkCluster() {
	w.Helper()
	admin := w.admin()
	for _, each := range []struct {
		object client.Object
		key    client.ObjectKey
	}{
		{&corev1.ConfigMap{}, client.ObjectKey{Namespace: "kube-system", Name: "shoot-info"}},
		{&corev1.ConfigMap{}, client.ObjectKey{Namespace: "kube-system", Name: "cluster-identity"}},
		{&rbacv1.ClusterRole{}, client.ObjectKey{Name: "gardener.cloud:system:read-only"}},
	} {
		kit.Must(w, admin.Get(w.Context(), each.key, each.object))
	}
	kit.Must(w, admin.Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}}))
	kit.Must(w, admin.Create(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "secret"}, Data: map[string][]byte{"a": []byte("b")}}))
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the controllers of the shoot are running", func() string {
		return kit.TextOf(admin.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{}))
	})
}

// checkFlagChange checks that only the bundle of the API server and the Cluster, which contains the Shoot, were written.
// Each is a Secret and a ManagedResource.
func (w *world) checkFlagChange(sent []string) {
	w.Helper()
	w.Logf("writes after a change of one flag: %v", sent)
	want := []string{
		"POST /api/v1/namespaces/garden/secrets", "PATCH /apis/resources.gardener.cloud/v1alpha1/namespaces/garden/managedresources/" + technical,
		"POST /api/v1/namespaces/" + technical + "/secrets", "PATCH /apis/resources.gardener.cloud/v1alpha1/namespaces/" + technical + "/managedresources/kube-apiserver",
	}
	if !slices.Equal(sent, want) {
		w.Errorf("after a change of one flag, gardenlet wrote %v to the seed", sent)
	}
}

// hibernate hibernates the Shoot and wakes it up again. It stops the programs according to their Deployments, and returns
// those that it has started.
func (w *world) hibernate(stopOthers, stopServer func()) (*controlplane.Process, *kit.Process) {
	w.Helper()
	shoot := w.get()
	kit.Change(w, w.garden, shoot, func() { shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} })
	stopOthers()
	w.awaitReplicas("kube-apiserver", 0)
	stopServer()
	if shoot := w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished"); !shoot.Status.IsHibernated {
		w.Error("the status does not report that the Shoot is hibernated")
	}
	w.awaitReplicas("gardener-resource-manager", 0)
	w.awaitReplicas("kube-controller-manager", 0)
	w.checkConditions(corev1beta1.ConditionTrue, "ConditionNotChecked")

	shoot = w.get()
	kit.Change(w, w.garden, shoot, func() { shoot.Spec.Hibernation.Enabled = ptr.To(false) })
	server, manager := w.startServer(), w.startManager()
	if shoot := w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished"); shoot.Status.IsHibernated {
		w.Error("the status still reports that the Shoot is hibernated")
	}
	return server, manager
}

// deletion deletes the Shoot and checks that nothing is left.
func (w *world) deletion() {
	w.Helper()
	shoot := w.get()
	kit.Change(w, w.garden, shoot, func() {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	kit.Must(w, w.garden.Delete(w.Context(), shoot))
	kit.EventuallyWithin(w, 6*kit.WaitTimeout, "the Shoot is deleted", func() string {
		if shoot := w.get(); shoot != nil {
			return shoot.Status.LastOperation.Description + "\n" + w.bundles()
		}
		return ""
	})
	if left := w.left(); len(left) > 0 {
		w.Errorf("these objects still exist: %v", left)
	}
}
