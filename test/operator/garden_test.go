package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/garden"
	"github.com/trellis-k8s/trellis/pkg/operator/schemes"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

// operatorUser is the operator in the runtime cluster. It has exactly the rights that its chart grants.
const operatorUser = "system:serviceaccount:garden:gardener-operator"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// world is a runtime cluster.
type world struct {
	*testing.T
	cluster *controlplane.ControlPlane
	client  client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	// The API server calls no webhooks: those of the resource-manager are registered for a Service whose Pods are simulated.
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{
		ControllerManager: true, Scheduler: true, Nodes: 2, AvailableAtOnce: true,
		APIServerArgs: map[string][]string{"disable-admission-plugins": {"MutatingAdmissionWebhook,ValidatingAdmissionWebhook"}},
	})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, cluster.Stop()) })
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	definitions := filepath.Join(root, "config", "crd")
	_, err = envtest.InstallCRDs(cluster.Config(), envtest.CRDInstallOptions{
		Paths: []string{definitions, filepath.Join(definitions, "operator")}, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout,
	})
	kit.Must(t, err)
	w := &world{T: t, cluster: cluster}
	w.client, err = client.New(cluster.Config(), client.Options{Scheme: schemes.Runtime()})
	kit.Must(t, err)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: constants.PriorityClassGardenSystemCritical}, Value: 999999550},
	} {
		kit.Must(t, w.client.Create(t.Context(), object))
	}
	charts.Apply(t, w.client, "operator", map[string]any{}, charts.IsRight)
	fleet.SetImages(t, "resource-manager", "etcd-operator", "etcd-member", "vpa-admission-controller", "vpa-recommender", "vpa-updater", "kube-apiserver",
		"kube-controller-manager", "apiserver", "controller-manager", "scheduler", "admission-controller")
	return w
}

// operate runs the flow until the returned function is called. It returns the recorded requests.
func (w *world) operate() (requests *kit.Requests, stop func()) {
	w.Helper()
	requests = &kit.Requests{}
	config := w.cluster.Config()
	config.Wrap(requests.Wrap)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	options := kit.ManagerOptions(schemes.Runtime())
	options.Cache.NewInformer = rewatch.NewInformer
	mgr, err := manager.New(config, options)
	kit.Must(w, err)
	configuration := &v1alpha1.OperatorConfiguration{}
	v1alpha1.SetDefaults(configuration)
	kit.Must(w, garden.AddToManager(mgr, garden.Options{
		Namespace: constants.GardenNamespace, Config: configuration, Clock: clock.RealClock{}, Version: "v1",
		Identity: &corev1beta1.Gardener{ID: "operator-0", Name: "gardener-operator", Version: "v1"},
		Address:  func() string { return "https://127.0.0.1:1" }, // the Pods of the virtual garden's API server do not run
	}))
	return requests, kit.Run(w, mgr)
}

// declare creates a Garden.
func (w *world) declare() *operatorv1alpha1.Garden {
	w.Helper()
	declared := &operatorv1alpha1.Garden{}
	declared.Name = "local"
	declared.Spec.RuntimeCluster.Networking = operatorv1alpha1.RuntimeNetworking{Pods: []string{"10.1.0.0/16"}, Services: []string{"10.2.0.0/16"}}
	declared.Spec.RuntimeCluster.Provider.Zones = []string{"a", "b"}
	declared.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{{Name: "ingress.example.org"}}
	declared.Spec.RuntimeCluster.Ingress.Controller.Kind = "nginx"
	declared.Spec.VirtualCluster = operatorv1alpha1.VirtualCluster{
		DNS:        operatorv1alpha1.DNS{Domains: []operatorv1alpha1.DNSDomain{{Name: "garden.example.org"}}},
		Gardener:   operatorv1alpha1.Gardener{ClusterIdentity: "local"},
		Kubernetes: operatorv1alpha1.Kubernetes{Version: "1.36.1"},
		Maintenance: operatorv1alpha1.Maintenance{TimeWindow: operatorv1alpha1.MaintenanceTimeWindow{
			Begin: "220000+0100", End: "230000+0100",
		}},
		Networking: operatorv1alpha1.Networking{Services: []string{"100.64.0.0/13"}},
	}
	kit.Must(w, w.client.Create(w.Context(), declared))
	return declared
}

// bundles describes the ManagedResources for an error message.
func (w *world) bundles() string {
	var list resourcesv1alpha1.ManagedResourceList
	if err := w.client.List(w.Context(), &list); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, mr := range list.Items {
		fmt.Fprintf(&text, "%s deleting %t", mr.Name, mr.DeletionTimestamp != nil)
		for _, condition := range mr.Status.Conditions {
			fmt.Fprintf(&text, " %s=%s (%.150s)", condition.Type, condition.Status, condition.Message)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// exists waits until an object exists.
func (w *world) exists(object client.Object, name string) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, fmt.Sprintf("%T %s exists", object, name), func() string {
		if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, object); err != nil {
			return err.Error() + "\n" + w.bundles()
		}
		return ""
	})
}

// startEtcd acts as the operator of etcd: it reports that all members are ready.
func (w *world) startEtcd(name string) {
	w.Helper()
	etcd := &unstructured.Unstructured{}
	etcd.SetAPIVersion("druid.gardener.cloud/v1alpha1")
	etcd.SetKind("Etcd")
	w.exists(etcd, name)
	kit.EventuallyTrue(w, "the status of "+name+" is written", func() bool {
		if w.client.Get(w.Context(), client.ObjectKeyFromObject(etcd), etcd) != nil {
			return false
		}
		annotations := etcd.GetAnnotations()
		delete(annotations, constants.AnnotationGardenerOperation)
		etcd.SetAnnotations(annotations)
		if w.client.Update(w.Context(), etcd) != nil {
			return false
		}
		now := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
		condition := func(kind string) any {
			return map[string]any{"type": kind, "status": "True", "reason": "Test", "message": "ready", "lastTransitionTime": now, "lastUpdateTime": now}
		}
		etcd.Object["status"] = map[string]any{
			"observedGeneration": etcd.GetGeneration(), "ready": true, "conditions": []any{condition("Ready"), condition("AllMembersUpdated")},
		}
		return w.client.Status().Update(w.Context(), etcd) == nil
	})
}

// TestGarden creates, changes and deletes a Garden.
func TestGarden(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.cluster.Kubeconfig(), nil, "controllers: {resourceClass: seed}")
	declared := w.declare()
	requests, stop := w.operate()

	w.startEtcd("virtual-garden-etcd-main")
	w.startEtcd("virtual-garden-etcd-events")
	w.exists(&appsv1.Deployment{}, "virtual-garden-kube-apiserver")
	w.exists(&corev1.Secret{}, "gardener-internal")
	kit.EventuallyWithin(t, 4*kit.WaitTimeout, "the Garden reports what it waits for", func() string {
		kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(declared), declared))
		status := declared.Status
		switch {
		case status.LastOperation == nil || status.ObservedGeneration != declared.Generation || status.Gardener == nil || status.Gardener.ID != "operator-0":
			return fmt.Sprintf("%+v", status)
		case len(status.AdvertisedAddresses) != 1 || status.AdvertisedAddresses[0].URL != "https://api.garden.example.org":
			return fmt.Sprintf("%+v", status.AdvertisedAddresses)
		case !strings.HasPrefix(declared.Annotations[constants.AnnotationGenericTokenKubeconfigSecretName], constants.SecretNameGenericTokenKubeconfig):
			return fmt.Sprintf("the annotations are %v", declared.Annotations)
		case status.LastOperation.State != corev1beta1.LastOperationStateProcessing || !strings.Contains(status.LastOperation.Description, "has no valid token"):
			return fmt.Sprintf("%+v", status.LastOperation)
		}
		return ""
	})
	t.Logf("up to the API server, the operator has written %d times", len(requests.Writes()))
	w.isPrepared()

	kit.Change(t, w.client, declared, func() {
		declared.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{
			LoadBalancerServices: &operatorv1alpha1.SettingLoadBalancerServices{Annotations: map[string]string{"example.org/public": "true"}},
		}
	})
	service := &corev1.Service{}
	kit.Eventually(t, "the annotation is on the Service", func() string {
		w.exists(service, "virtual-garden-kube-apiserver")
		if service.Annotations["example.org/public"] != "true" {
			return fmt.Sprint(service.Annotations)
		}
		return ""
	})

	w.rotates(declared)

	kit.Must(t, w.client.Delete(t.Context(), declared))
	kit.EventuallyWithin(t, 6*kit.WaitTimeout, "the Garden is gone", func() string {
		err := w.client.Get(t.Context(), client.ObjectKeyFromObject(declared), declared)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v, %+v\n%s", err, declared.Status.LastOperation, w.bundles())
	})
	stop()
	w.isEmpty()
}

// rotates starts the rotation of a key. The API server of the virtual garden does not run, so the rotation does not end.
func (w *world) rotates(declared *operatorv1alpha1.Garden) {
	w.Helper()
	keys := func() int {
		var list corev1.SecretList
		kit.Must(w, w.client.List(w.Context(), &list, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{
			constants.LabelSecretsManagerName: constants.SecretNameServiceAccountKey,
		}))
		return len(list.Items)
	}
	if before := keys(); before != 1 {
		w.Fatalf("there are %d keys before the rotation", before)
	}
	kit.Change(w, w.client, declared, func() {
		metav1.SetMetaDataAnnotation(&declared.ObjectMeta, constants.AnnotationGardenerOperation, constants.OperationRotateServiceAccountKeyStart)
	})
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "there are two keys, and the status shows the rotation", func() string {
		kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(declared), declared))
		credentials := declared.Status.Credentials
		if credentials == nil || credentials.Rotation == nil || credentials.Rotation.ServiceAccountKey == nil ||
			credentials.Rotation.ServiceAccountKey.Phase != corev1beta1.RotationPreparing {
			return fmt.Sprintf("%+v", credentials)
		}
		if operation, annotated := declared.Annotations[constants.AnnotationGardenerOperation]; annotated || keys() != 2 {
			return fmt.Sprintf("the operation is %q, and there are %d keys", operation, keys())
		}
		return ""
	})
}

// isPrepared checks the namespace and the PriorityClasses in the runtime cluster.
func (w *world) isPrepared() {
	w.Helper()
	namespace, class := &corev1.Namespace{}, &schedulingv1.PriorityClass{}
	kit.Eventually(w, "the runtime cluster is prepared", func() string {
		if err := w.client.Get(w.Context(), client.ObjectKey{Name: constants.GardenNamespace}, namespace); err != nil {
			return err.Error()
		}
		if namespace.Labels[constants.LabelGardenRole] != constants.RoleGarden || namespace.Annotations["high-availability-config.resources.gardener.cloud/zones"] != "a,b" {
			return fmt.Sprint(namespace.Labels, namespace.Annotations)
		}
		if err := w.client.Get(w.Context(), client.ObjectKey{Name: constants.PriorityClassGardenSystem500}, class); err != nil {
			return err.Error()
		}
		return ""
	})
}

// isEmpty checks that no ManagedResources, generated Secrets and Deployments are left.
func (w *world) isEmpty() {
	w.Helper()
	var bundles resourcesv1alpha1.ManagedResourceList
	var secrets corev1.SecretList
	var deployments appsv1.DeploymentList
	for _, list := range []client.ObjectList{&bundles, &secrets, &deployments} {
		kit.Must(w, w.client.List(w.Context(), list, client.InNamespace(constants.GardenNamespace)))
	}
	for _, secret := range secrets.Items {
		if secret.DeletionTimestamp == nil {
			w.Errorf("Secret %s is left", secret.Name)
		}
	}
	if len(bundles.Items) > 0 || len(deployments.Items) > 0 {
		w.Errorf("%d ManagedResources and %d Deployments are left", len(bundles.Items), len(deployments.Items))
	}
}
