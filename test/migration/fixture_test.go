package migration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootmigration"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

const (
	namespace = "garden-dev"
	shootName = "one"
	technical = "shoot--dev--one"
	version   = "1.37.1"
)

// world is a garden with two Seeds, and the controller that lets control planes move.
type world struct {
	*testing.T
	scheme              *runtime.Scheme
	gardens             *garden.Garden
	garden              client.Client
	source, destination *seed
}

func newWorld(t *testing.T) *world {
	t.Helper()
	var gardens garden.Shared
	f := fleet.Start(t, &gardens, controlplane.Options{})
	t.Cleanup(func() {
		kit.Must(t, f.Gardens.KillAPIServer()) // a graceful stop would wait for watches to end
		kit.Must(t, f.Gardens.Stop())
	})
	w := &world{T: t, scheme: f.Scheme, gardens: f.Gardens, garden: f.Garden}
	fleet.SetImages(t, "kube-apiserver", "kube-controller-manager", "resource-manager", "kube-scheduler", "kubelet", "gardener-node-agent", "pause",
		"machine-controller-manager", "cluster-autoscaler")
	w.prepareGarden()
	// The garden and the first Seed share a cluster: they have no objects in common.
	w.source = w.newSeed("local", f.Gardens.Config(), f.Garden)
	w.destination = w.newSeed("other", f.Seeds.Config(), f.Seed)
	fleet.RunControllers(t, w.gardens.Config(), kit.ManagerOptions(w.scheme), shootmigration.Controller())
	w.handsOver()
	return w
}

// prepareGarden creates the objects that a Shoot and its Seeds refer to, and grants the gardenlets the rights of their chart and of the
// controller-manager.
func (w *world) prepareGarden() {
	w.Helper()
	for _, name := range []string{constants.GardenNamespace, constants.SystemPublicNamespace, constants.SystemSeedLeaseNamespace} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	seeds := []any{map[string]any{"name": "local"}, map[string]any{"name": "other"}}
	charts.Apply(w, w.garden, "gardenlet", map[string]any{"mode": "garden", "seeds": seeds}, charts.IsRight)
	fleet.GrantRights(w, w.gardens.Config(), w.garden)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{constants.LabelProjectName: "dev", constants.LabelGardenRole: constants.RoleProject},
	}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "backup"}})
	project, profile := &corev1beta1.Project{}, &corev1beta1.CloudProfile{}
	w.example("project", project)
	w.example("cloudprofile", profile)
	profile.Spec.Kubernetes.Versions = []corev1beta1.ExpirableVersion{{Version: version}}
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "stand-in"}}
	for _, kind := range []string{"BackupBucket", "BackupEntry", corev1beta1.KindDNSRecord} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: "local"})
	}
	for kind, of := range map[string]string{
		"Infrastructure": "local", "ControlPlane": "local", "Network": "local", "Worker": "local", "OperatingSystemConfig": "linux",
	} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: of})
	}
	for name, migrated := range map[string]corev1beta1.ControllerResourceLifecycleStrategy{
		"early": corev1beta1.BeforeKubeAPIServer, "late": corev1beta1.AfterKubeAPIServer,
	} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{
			Kind: corev1beta1.KindExtension, Type: name, WorkerlessSupported: ptr.To(true), AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot},
			Lifecycle: &corev1beta1.ControllerResourceLifecycle{Migrate: &migrated},
		})
	}
	for _, object := range []client.Object{project, profile, registration} {
		w.create(object)
	}
}

// declareSeed creates a ready Seed with backups, and its bucket.
func (w *world) declareSeed(name string, gardenlet *corev1beta1.Gardener) {
	w.Helper()
	declared := &corev1beta1.Seed{}
	w.example("seed", declared)
	declared.Name, declared.Labels = name, nil
	declared.Spec.Taints, declared.Spec.Extensions, declared.Spec.Resources, declared.Spec.AccessRestrictions = nil, nil, nil, nil
	declared.Spec.DNS.Internal.Type = corev1beta1.DNSUnmanaged // needs no extension
	w.create(declared)
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(declared), declared))
	declared.Status.ObservedGeneration, declared.Status.Gardener = declared.Generation, gardenlet
	declared.Status.KubernetesVersion, declared.Status.ClusterIdentity = ptr.To("v"+version), ptr.To(name)
	declared.Status.Conditions = nil
	for _, kind := range []corev1beta1.ConditionType{
		corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedBackupBucketsReady,
	} {
		declared.Status.Conditions = append(declared.Status.Conditions, corev1beta1.Condition{
			Type: kind, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(), Reason: "Test", Message: "ready",
		})
	}
	kit.WriteStatus(w, w.garden, declared)
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: string(declared.UID)}, Spec: corev1beta1.BackupBucketSpec{
		Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, SeedName: ptr.To(name), CredentialsRef: declared.Spec.Backup.CredentialsRef,
	}}
	w.create(bucket)
}

// example reads an object from the examples.
func (w *world) example(name string, into client.Object) {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "core", name+".yaml"))
	kit.Must(w, err)
	first, _, _ := strings.Cut(string(text), "\n---\n")
	kit.Must(w, yaml.UnmarshalStrict([]byte(first), into))
}

func (w *world) create(object client.Object) {
	w.Helper()
	fleet.Create(w.Context(), w, w.garden, object)
}

// handsOver simulates the controllers of BackupEntries of both gardenlets, whose own tests check them.
func (w *world) handsOver() {
	w.Helper()
	kit.Answer(w.T, w.garden, func(ctx context.Context, object unstructuredObject) {
		entry := &corev1beta1.BackupEntry{}
		if w.garden.Get(ctx, client.ObjectKeyFromObject(object), entry) != nil {
			return
		}
		before := entry.DeepCopy()
		last, wanted, current := entry.Status.LastOperation, ptr.Deref(entry.Spec.SeedName, ""), ptr.Deref(entry.Status.SeedName, "")
		operation := corev1beta1.LastOperationTypeReconcile
		switch {
		case current != "" && current != wanted:
			operation, entry.Status.SeedName = corev1beta1.LastOperationTypeMigrate, nil
		case entry.Annotations[constants.AnnotationGardenerOperation] == constants.OperationRestore:
			operation, entry.Status.SeedName = corev1beta1.LastOperationTypeRestore, ptr.To(wanted)
		case last != nil && last.Type == corev1beta1.LastOperationTypeMigrate, last != nil && entry.Status.ObservedGeneration == entry.Generation:
			return
		default:
			entry.Status.SeedName = ptr.To(wanted)
		}
		entry.Status.ObservedGeneration = entry.Generation
		entry.Status.LastOperation = &corev1beta1.LastOperation{
			Type: operation, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, Description: "done", LastUpdateTime: metav1.Now(),
		}
		if w.garden.Status().Patch(ctx, entry, client.MergeFrom(before)) != nil || operation != corev1beta1.LastOperationTypeRestore {
			return
		}
		restored := entry.DeepCopy()
		delete(restored.Annotations, constants.AnnotationGardenerOperation)
		_ = w.garden.Patch(ctx, restored, client.MergeFrom(entry)) // a failure is repeated
	}, corev1beta1.SchemeGroupVersion.WithKind("BackupEntry"))
}
