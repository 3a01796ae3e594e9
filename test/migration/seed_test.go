package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/extension"
	shootflow "github.com/trellis-k8s/trellis/pkg/shoot"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

type unstructuredObject = *unstructured.Unstructured

// seed is a seed cluster with its gardenlet. Its other programs are simulated, as are those of the control plane.
type seed struct {
	*world
	name   string
	config *rest.Config
	seed   client.Client
	// before is what exists before the first control plane: see left.
	before []string

	mu sync.Mutex
	// calls are the calls of extensions, and deleted the ManagedResources for the shoot cluster that would have deleted its objects.
	calls, deleted []string
	// lost is what happened to machines.
	lost []string
}

func (w *world) newSeed(name string, config *rest.Config, of client.Client) *seed {
	w.Helper()
	s := &seed{world: w, name: name, config: config, seed: of}
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	var paths []string
	for _, name := range []string{
		"resources.gardener.cloud_managedresources", "druid/druid.gardener.cloud_etcds", "druid/druid.gardener.cloud_etcdcopybackupstasks",
		"autoscaling/autoscaling.k8s.io_verticalpodautoscalers", "extensions/extensions.gardener.cloud_clusters", "extensions/extensions.gardener.cloud_extensions",
		"extensions/extensions.gardener.cloud_infrastructures", "extensions/extensions.gardener.cloud_controlplanes", "extensions/extensions.gardener.cloud_networks",
		"extensions/extensions.gardener.cloud_operatingsystemconfigs", "extensions/extensions.gardener.cloud_workers",
		"extensions/extensions.gardener.cloud_containerruntimes", "machine/machine.sapcloud.io_machineclasses", "machine/machine.sapcloud.io_machinedeployments",
		"machine/machine.sapcloud.io_machines", "machine/machine.sapcloud.io_machinesets",
	} {
		paths = append(paths, filepath.Join(root, "config", "crd", name+".yaml"))
	}
	_, err = envtest.InstallCRDs(s.config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout})
	kit.Must(w, err)
	fleet.Create(w.Context(), w, s.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}})
	parts, err := inprocess.ResourceManager{Scheme: w.scheme, Source: s.config, Target: s.config, Class: "seed"}.New(w.Context())
	kit.Must(w, err)
	kit.Run(w, parts.Manager)
	s.extensions()
	s.programs()
	identity := &corev1beta1.Gardener{ID: name, Name: "gardenlet", Version: "v1"}
	w.declareSeed(name, identity)
	s.before = s.existing()
	s.gardenlet(identity)
	return s
}

// gardenlet runs the controller of Shoots of the Seed, with the rights of a gardenlet in the garden.
func (s *seed) gardenlet(identity *corev1beta1.Gardener) {
	s.Helper()
	mgr, err := manager.New(s.config, kit.ManagerOptions(s.scheme))
	kit.Must(s, err)
	toGarden := s.gardens.Config()
	toGarden.Impersonate = rest.ImpersonationConfig{UserName: constants.PrefixSeedUser + s.name, Groups: []string{constants.SeedsGroup, "system:authenticated"}}
	ofSeed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{constants.LabelPrefixSeedName + s.name: "true"})}
	cached, err := cluster.New(toGarden, func(o *cluster.Options) {
		o.Scheme = s.scheme
		o.Cache.ByObject = map[client.Object]cache.ByObject{ // as cmd/gardenlet
			&corev1beta1.Shoot{}: ofSeed, &corev1beta1.BackupEntry{}: ofSeed,
			&corev1beta1.BackupBucket{}:           {Field: fields.OneTermEqualSelector("spec.seedName", s.name)},
			&corev1beta1.ControllerInstallation{}: {Field: fields.OneTermEqualSelector("spec.seedRef.name", s.name)},
		}
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1beta1.InternalSecret{}, &corev1beta1.ShootState{}}}
	})
	kit.Must(s, err)
	kit.Must(s, mgr.Add(cached))
	config := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(config)
	kit.Must(s, shootflow.AddToManager(mgr, cached, shootflow.Options{
		SeedName: s.name, Namespace: constants.GardenNamespace, Config: config, Clock: clock.RealClock{}, Version: "v1", Identity: identity,
		Address: func(string) string { return "https://127.0.0.1:1" }, // no API server answers
	}))
	kit.Run(s, mgr)
}

// actuator simulates the extension of a type. Its state is how often it was reconciled or restored, in all Seeds.
type actuator struct {
	*seed
	kind string
}

func (a actuator) called(verb string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, verb+" "+a.kind)
}

func (a actuator) Reconcile(_ context.Context, object *extensionsv1alpha1.Extension, _ *extension.Cluster) (extension.Result, error) {
	a.called("reconcile")
	if object.Status.State != nil {
		return extension.Done(), nil
	}
	return extension.Done(), extension.SetState(object, map[string]string{"made": a.name})
}

func (a actuator) Delete(context.Context, *extensionsv1alpha1.Extension, *extension.Cluster) (extension.Result, error) {
	a.called("delete")
	return extension.Done(), nil
}

func (a actuator) ForceDelete(ctx context.Context, object *extensionsv1alpha1.Extension, cluster *extension.Cluster) (extension.Result, error) {
	return a.Delete(ctx, object, cluster)
}

func (a actuator) Migrate(context.Context, *extensionsv1alpha1.Extension, *extension.Cluster) (extension.Result, error) {
	a.called("migrate")
	return extension.Done(), nil
}

func (a actuator) Restore(_ context.Context, object *extensionsv1alpha1.Extension, _ *extension.Cluster) (extension.Result, error) {
	state := "nothing"
	if object.Status.State != nil {
		state = string(object.Status.State.Raw)
	}
	a.called("restore " + state + " of")
	return extension.Done(), nil
}

// extensions runs the extensions of the seed.
func (s *seed) extensions() {
	s.Helper()
	mgr, err := manager.New(s.config, kit.ManagerOptions(s.scheme))
	kit.Must(s, err)
	for _, kind := range []string{"early", "late"} {
		kit.Must(s, extension.AddToManager(mgr, actuator{s, kind}, extension.Options{Type: kind}))
	}
	s.infrastructure(mgr)
	kit.Run(s, mgr)
}

// programs simulates the controllers of Kubernetes, the etcd operator, and the programs of the control plane. They take turns, which costs the
// API server less than if all looked at the same time.
func (s *seed) programs() {
	s.Helper()
	apps, etcd := appsv1.SchemeGroupVersion, druidv1alpha1.SchemeGroupVersion
	answers := map[schema.GroupVersionKind]func(context.Context, unstructuredObject){
		apps.WithKind("Deployment"): s.workload, apps.WithKind("StatefulSet"): s.workload,
		corev1.SchemeGroupVersion.WithKind("Namespace"): s.namespaces, corev1.SchemeGroupVersion.WithKind("Secret"): s.tokens,
		etcd.WithKind("Etcd"): s.etcd, etcd.WithKind("EtcdCopyBackupsTask"): s.etcd,
		resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"): s.inShoot,
	}
	kit.Answer(s.T, s.seed, func(ctx context.Context, object unstructuredObject) {
		answers[object.GroupVersionKind()](ctx, object)
	}, slices.Collect(maps.Keys(answers))...)
}

// report merges a status into an object. A failure is repeated, because the object is answered again.
func (s *seed) report(ctx context.Context, object unstructuredObject, status map[string]any) {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		_ = s.seed.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	}
}

// workload reports all Pods of a workload as available. Without Pods, nothing remains to be deleted before it.
func (s *seed) workload(ctx context.Context, object unstructuredObject) {
	if object.GetDeletionTimestamp() != nil {
		_ = s.seed.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		return
	}
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if observed == object.GetGeneration() {
		return
	}
	s.report(ctx, object, map[string]any{
		"observedGeneration": object.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
		"terminatingReplicas": 0,
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "Test"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	})
}

// namespaces ends the deletion of a namespace with what is in it.
func (s *seed) namespaces(ctx context.Context, object unstructuredObject) {
	if object.GetDeletionTimestamp() == nil {
		return
	}
	in := client.InNamespace(object.GetName())
	for _, kind := range []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	} {
		if s.seed.DeleteAllOf(ctx, kind, in) != nil {
			return
		}
	}
	var left resourcesv1alpha1.ManagedResourceList
	if s.seed.List(ctx, &left, in) != nil || len(left.Items) > 0 {
		return
	}
	clients, err := kubernetes.NewForConfig(s.config)
	if err == nil {
		final := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}}
		_, _ = clients.CoreV1().Namespaces().Finalize(ctx, final, metav1.UpdateOptions{})
	}
}

// etcd reports an Etcd as ready and backed up, with the requested snapshot, and copies of backups as done.
func (s *seed) etcd(ctx context.Context, object unstructuredObject) {
	at := metav1.Now().UTC().Format(time.RFC3339)
	condition := func(kind, message string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": "Test", "message": message, "lastTransitionTime": at, "lastUpdateTime": at}
	}
	annotations := object.GetAnnotations()
	if annotations[constants.AnnotationGardenerOperation] != "" {
		delete(annotations, constants.AnnotationGardenerOperation)
		object.SetAnnotations(annotations)
		if s.seed.Update(ctx, object) != nil {
			return
		}
	}
	snapshot := annotations["druid.gardener.cloud/take-snapshot"]
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions"); observed == object.GetGeneration() && strings.Contains(fmt.Sprint(conditions), snapshot) {
		return
	}
	conditions := []any{condition("Succeeded", "copied")}
	if object.GetKind() == "Etcd" {
		conditions = []any{
			condition("Ready", "done"), condition("AllMembersUpdated", "done"), condition("BackupReady", "done"), condition("SnapshotTaken", snapshot),
		}
	}
	s.report(ctx, object, map[string]any{"observedGeneration": object.GetGeneration(), "ready": true, "lastErrors": []any{}, "conditions": conditions})
}

// tokens gives the programs of the control plane access to the API server.
func (s *seed) tokens(ctx context.Context, object unstructuredObject) {
	if object.GetNamespace() != technical || object.GetDeletionTimestamp() != nil {
		return
	}
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: technical, Name: constants.PrefixShootAccess + resourcemanager.Account, Labels: map[string]string{resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot},
	}}
	renewed := map[string]string{resourcesv1alpha1.AnnotationTokenRenewTimestamp: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	own.Annotations = renewed
	_ = s.seed.Create(ctx, own) // it exists, unless the control plane is new
	if !strings.HasPrefix(object.GetName(), constants.PrefixShootAccess) || object.GetAnnotations()[resourcesv1alpha1.AnnotationTokenRenewTimestamp] != "" {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": renewed}, "stringData": map[string]string{"token": "t"}})
	if err == nil {
		_ = s.seed.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	}
}

// inShoot simulates the resource-manager of the shoot. It records which ManagedResources would have deleted objects of the cluster.
func (s *seed) inShoot(ctx context.Context, object unstructuredObject) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if object.GetNamespace() != technical || s.seed.Get(ctx, client.ObjectKeyFromObject(object), mr) != nil || ptr.Deref(mr.Spec.Class, "") != "" {
		return
	}
	if s.seed.Get(ctx, client.ObjectKey{Namespace: technical, Name: resourcemanager.Name}, &appsv1.Deployment{}) != nil {
		return // it does not run
	}
	before, finalizer := mr.DeepCopy(), resourcesv1alpha1.FinalizerOf("")
	if mr.DeletionTimestamp != nil {
		if !ptr.Deref(mr.Spec.KeepObjects, false) {
			s.mu.Lock()
			s.deleted = append(s.deleted, mr.Name)
			s.mu.Unlock()
		}
		mr.Finalizers = slices.DeleteFunc(mr.Finalizers, func(name string) bool { return name == finalizer })
		_ = s.seed.Patch(ctx, mr, client.MergeFrom(before))
		return
	}
	if !slices.Contains(mr.Finalizers, finalizer) {
		mr.Finalizers = append(mr.Finalizers, finalizer)
		_ = s.seed.Patch(ctx, mr, client.MergeFrom(before))
		return
	}
	if mr.Status.ObservedGeneration == mr.Generation {
		return
	}
	mr.Status.ObservedGeneration, mr.Status.SecretsDataChecksum = mr.Generation, ptr.To("checksum")
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: mr.Name}}
	mr.Status.Conditions = nil
	for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
		resourcesv1alpha1.ResourcesApplied: resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ResourcesHealthy: resourcesv1alpha1.ConditionTrue,
		resourcesv1alpha1.ResourcesProgressing: resourcesv1alpha1.ConditionFalse,
	} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: kind, Status: status, Reason: "Test", Message: "done", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	_ = s.seed.Status().Patch(ctx, mr, client.MergeFrom(before))
}
