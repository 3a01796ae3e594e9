package shoot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/seedsystem"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	shootflow "github.com/trellis-k8s/trellis/pkg/shoot"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var (
	gardens garden.Shared
	seeds   = fleet.Shared{
		Gardens: &gardens, Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2, AvailableAtOnce: true}, Prepare: prepareSeed,
	}
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "trellis-shoot-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	gardens.Options.ControlPlane.AuditLog, seeds.Options.AuditLog = filepath.Join(dir, "garden.log"), filepath.Join(dir, "seed.log")
	return seeds.Run(m)
}

const (
	namespace = "garden-dev"
	seedName  = "local"
	shootName = "one"
	technical = "shoot--dev--one"
	version   = "1.37.1"
	// seedManager is the configuration of the seed's resource-manager that concerns control planes.
	seedManager = "controllers: {resourceClass: seed, managedResource: {namespaceServiceAccounts: true}}"
	// mastersGroup has all permissions without RBAC objects.
	mastersGroup = "system:masters"
)

// identity is the identity of gardenlet.
var identity = corev1beta1.Gardener{ID: "gardenlet-0", Name: "gardenlet", Version: "v1"}

// world is a garden with a ready Seed and the seed cluster.
type world struct {
	*testing.T
	scheme       *runtime.Scheme
	garden, seed client.Client
	gardens      *garden.Garden
	seeds        *controlplane.ControlPlane
	// port of the shoot's API server.
	port int
	// clock of gardenlet.
	clock clock.PassiveClock
	// tune changes the options of gardenlet. It may be nil.
	tune func(*shootflow.Options)
	// user of gardenlet in the garden and the seed. It defaults to the user of the tests.
	user string
	// gardenUser is the user of gardenlet in the garden, with the groups of gardenlets. It defaults to user.
	gardenUser string
	// line is the connection of gardenlet to the seed. It defaults to one without failures.
	line *line
	// serverArgs are additional flags of the shoot's API server.
	serverArgs map[string]string
	// webhookPort is the port of the webhooks of the shoot's resource-manager, or 0.
	webhookPort atomic.Int32
}

func newWorld(t *testing.T) *world {
	t.Helper()
	f := seeds.Get(t)
	w := &world{
		T: t, scheme: f.Scheme, garden: f.Garden, seed: f.Seed, gardens: f.Gardens, seeds: f.Seeds, port: kit.FreePort(t), clock: clock.RealClock{},
	}
	fleet.SetImages(t, "kube-apiserver", "kube-controller-manager", "resource-manager")
	w.prepareGarden()
	w.discard()
	return w
}

// discard removes objects of the Shoot from the garden, which all tests share.
func (w *world) discard() {
	w.Helper()
	w.Cleanup(func() {
		ctx := context.WithoutCancel(w.Context())
		key := client.ObjectKey{Namespace: namespace, Name: shootName}
		shoot, state := &corev1beta1.Shoot{}, &corev1beta1.ShootState{}
		if w.garden.Get(ctx, key, state) == nil {
			state.Annotations = map[string]string{constants.AnnotationConfirmationDeletion: "true"}
			_ = w.garden.Update(ctx, state)
			_ = w.garden.Delete(ctx, state)
		}
		if w.garden.Get(ctx, key, shoot) != nil {
			return
		}
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
		shoot.Finalizers = nil
		_ = w.garden.Update(ctx, shoot)
		_ = w.garden.Delete(ctx, shoot)
	})
}

// prepareSeed creates the definitions and the objects of the Seed's flow.
func prepareSeed(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	var paths []string
	for _, directory := range []string{"", "extensions", "druid", "autoscaling", "machine"} {
		paths = append(paths, filepath.Join(root, "config", "crd", directory))
	}
	_, err = envtest.InstallCRDs(f.Seeds.Config(), envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout})
	kit.Must(t, err)
	system, err := seedsystem.Objects(seedsystem.Values{Namespace: constants.GardenNamespace})
	kit.Must(t, err)
	garden := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
	for _, object := range append([]client.Object{garden}, system...) {
		fleet.Create(t.Context(), t, f.Seed, object)
	}
}

// prepareGarden creates the objects that a Shoot refers to, and reports the Seed as ready.
func (w *world) prepareGarden() {
	w.Helper()
	w.create(w.garden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{constants.LabelProjectName: "dev", constants.LabelGardenRole: constants.RoleProject}}})
	project, profile, seed := &corev1beta1.Project{}, &corev1beta1.CloudProfile{}, &corev1beta1.Seed{}
	w.example("project", project)
	w.example("cloudprofile", profile)
	w.example("seed", seed)
	profile.Spec.Kubernetes.Versions = []corev1beta1.ExpirableVersion{{Version: version}}
	seed.Spec.Backup, seed.Spec.Taints, seed.Spec.Extensions, seed.Spec.Resources, seed.Spec.AccessRestrictions = nil, nil, nil, nil, nil
	seed.Spec.DNS.Internal.Type = corev1beta1.DNSUnmanaged // needs no extension
	for _, object := range []client.Object{project, profile, seed} {
		w.create(w.garden, object)
	}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(seed), seed))
	seed.Status.ObservedGeneration, seed.Status.Gardener = seed.Generation, identity.DeepCopy()
	seed.Status.KubernetesVersion, seed.Status.ClusterIdentity = ptr.To("v"+version), ptr.To("seed-1")
	seed.Status.Conditions = nil // from the previous test
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		seed.Status.Conditions = append(seed.Status.Conditions, corev1beta1.Condition{
			Type: kind, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(), Reason: "Test", Message: "ready",
		})
	}
	kit.WriteStatus(w, w.garden, seed)
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

func (w *world) create(c client.Client, object client.Object) {
	w.Helper()
	fleet.Create(w.Context(), w, c, object)
}

// gardenlet runs the controller of Shoots until the returned function is called. It returns the requests to the garden and the seed.
func (w *world) gardenlet() (toGarden, toSeed *kit.Requests, stop func()) {
	w.Helper()
	toGarden, toSeed = &kit.Requests{}, &kit.Requests{}
	mgr, err := w.newGardenlet(toGarden.Wrap, toSeed.Wrap)
	kit.Must(w, err)
	return toGarden, toSeed, kit.Run(w, mgr)
}

// newGardenlet returns a manager with the controller of Shoots that sends requests through these transports.
func (w *world) newGardenlet(toGarden, toSeed transport.WrapperFunc) (manager.Manager, error) {
	config, gardenConfig := w.seeds.Config(), w.gardens.Config()
	if w.line != nil {
		config.Wrap(w.line.wrap)
	}
	config.Wrap(toSeed)
	gardenConfig.Wrap(toGarden)
	gardenConfig.QPS, config.QPS = -1, -1
	if w.user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: w.user, Groups: []string{mastersGroup}}
		gardenConfig.Impersonate = config.Impersonate
	}
	if w.gardenUser != "" {
		gardenConfig.Impersonate = rest.ImpersonationConfig{UserName: w.gardenUser, Groups: []string{constants.SeedsGroup, "system:authenticated"}}
	}
	options := kit.ManagerOptions(w.scheme)
	options.Cache.NewInformer = rewatch.NewInformer
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("make a manager: %w", err)
	}
	garden, err := cluster.New(gardenConfig, func(o *cluster.Options) {
		o.Scheme, o.Cache.NewInformer = w.scheme, rewatch.NewInformer
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1beta1.InternalSecret{}, &corev1beta1.ShootState{}}}
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	if err := mgr.Add(garden); err != nil {
		return nil, err
	}
	configuration := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(configuration)
	flowOptions := shootflow.Options{
		SeedName: seedName, Namespace: constants.GardenNamespace, Config: configuration, Clock: w.clock, Version: "v1", Identity: &identity,
		Address: func(string) string { return w.address() },
	}
	if w.tune != nil {
		w.tune(&flowOptions)
	}
	return mgr, shootflow.AddToManager(mgr, garden, flowOptions)
}

func (w *world) address() string { return fmt.Sprintf("https://127.0.0.1:%d", w.port) }

// get returns the Shoot, or nil if it does not exist.
func (w *world) get() *corev1beta1.Shoot {
	w.Helper()
	shoot := &corev1beta1.Shoot{}
	err := w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: shootName}, shoot)
	if apierrors.IsNotFound(err) {
		return nil
	}
	kit.Must(w, err)
	return shoot
}

// eventually waits until the last operation of the Shoot's current generation has a type, state and text.
func (w *world) eventually(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState, text string) *corev1beta1.Shoot {
	w.Helper()
	var shoot *corev1beta1.Shoot
	kit.EventuallyWithin(w, 6*kit.WaitTimeout, fmt.Sprintf("the Shoot reports %s %s %q", kind, state, text), func() string {
		shoot = w.get()
		last := shoot.Status.LastOperation
		if last == nil || last.Type != kind || last.State != state || !strings.Contains(last.Description, text) || shoot.Status.ObservedGeneration != shoot.Generation {
			return fmt.Sprintf("last operation %+v\n%s", last, w.bundles())
		}
		return ""
	})
	return shoot
}

// bundles describes the ManagedResources in error messages.
func (w *world) bundles() string {
	var list resourcesv1alpha1.ManagedResourceList
	if err := w.seed.List(w.Context(), &list); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, mr := range list.Items {
		fmt.Fprintf(&text, "%s/%s deleting %t", mr.Namespace, mr.Name, mr.DeletionTimestamp != nil)
		for _, condition := range mr.Status.Conditions {
			fmt.Fprintf(&text, " %s=%s (%s: %.250s)", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// writes returns the requests that are writes.
func writes(requests *kit.Requests) []string { return requests.Writes() }

// quiet waits until no requests are sent for some time.
func quiet(t *testing.T, all ...*kit.Requests) {
	t.Helper()
	kit.Quiet(t, all...)
}

// left lists the remaining ManagedResources, namespaces and Clusters of the Shoot in the seed, and the Secrets with manifests. What the Seed
// remembers of Shoots stays.
func (w *world) left() []string {
	w.Helper()
	var names []string
	var mrs resourcesv1alpha1.ManagedResourceList
	var clusters extensionsv1alpha1.ClusterList
	var namespaces corev1.NamespaceList
	var secrets corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &mrs))
	kit.Must(w, w.seed.List(w.Context(), &clusters))
	kit.Must(w, w.seed.List(w.Context(), &namespaces))
	kit.Must(w, w.seed.List(w.Context(), &secrets, client.InNamespace(constants.GardenNamespace)))
	for _, mr := range mrs.Items {
		names = append(names, "ManagedResource "+mr.Name)
	}
	for _, cluster := range clusters.Items {
		names = append(names, "Cluster "+cluster.Name)
	}
	for _, each := range namespaces.Items {
		if strings.HasPrefix(each.Name, constants.PrefixTechnicalID) {
			names = append(names, "Namespace "+each.Name)
		}
	}
	for _, secret := range secrets.Items {
		if secret.Name != "shoot-records" {
			names = append(names, "Secret "+secret.Name)
		}
	}
	slices.Sort(names)
	return names
}

// awaitReplicas waits until a Deployment has the given number of replicas. For 0 replicas, it also waits until the Pods are
// deleted.
func (w *world) awaitReplicas(name string, replicas int32) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, fmt.Sprintf("Deployment %s has %d replicas", name, replicas), func() string {
		deployment := &appsv1.Deployment{}
		if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: name}, deployment); err != nil {
			return err.Error()
		}
		if *deployment.Spec.Replicas != replicas || deployment.Status.Replicas != replicas {
			return fmt.Sprintf("%d replicas declared, %d exist\n%s", *deployment.Spec.Replicas, deployment.Status.Replicas, w.bundles())
		}
		return ""
	})
}
