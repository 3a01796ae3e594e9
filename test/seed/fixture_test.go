// Package seed tests the flow of a Seed with a garden and a seed cluster, both with real API servers. Pods of the
// seed are simulated.
package seed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	seedflow "github.com/trellis-k8s/trellis/pkg/seed"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var gardens garden.Shared

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "trellis-seed-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	gardens.Options.ControlPlane.AuditLog = filepath.Join(dir, "garden.log")
	return gardens.Run(m)
}

// seedUser is the gardenlet in the seed. It has exactly the rights that its chart grants.
const seedUser = "system:serviceaccount:garden:gardenlet"

var seedGroups = []string{"system:serviceaccounts", "system:serviceaccounts:garden", "system:authenticated"}

// world is a garden, the cluster of a Seed, and a Seed that is not declared yet.
type world struct {
	*testing.T
	scheme       *runtime.Scheme
	garden, seed client.Client
	gardens      *garden.Garden
	seeds        *controlplane.ControlPlane
	// audit is the audit log of the seed.
	audit string
	// dir and commands are the directories of files and programs of shell commands.
	dir, commands string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	audit := filepath.Join(t.TempDir(), "seed.log")
	// The API server calls no webhooks: those of the resource-manager are registered for a Service whose Pods are
	// simulated.
	f := fleet.Start(t, &gardens, controlplane.Options{
		ControllerManager: true, Scheduler: true, Nodes: 2, AuditLog: audit,
		APIServerArgs: map[string][]string{"disable-admission-plugins": {"MutatingAdmissionWebhook,ValidatingAdmissionWebhook"}},
	})
	w := &world{T: t, scheme: f.Scheme, garden: f.Garden, seed: f.Seed, gardens: f.Gardens, seeds: f.Seeds, audit: audit}
	kit.DefineManagedResources(t, w.seeds.Config())
	w.create(w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}})
	charts.Apply(t, w.seed, "gardenlet", map[string]any{}, charts.IsRight)
	// The example reserves capacity on such nodes.
	var nodes corev1.NodeList
	kit.Must(t, w.seed.List(t.Context(), &nodes))
	for i := range nodes.Items {
		kit.Change(t, w.seed, &nodes.Items[i], func() { nodes.Items[i].Labels["example.org/tier"] = "control-planes" })
	}
	// The chart of gardenlet creates it.
	w.create(w.seed, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: constants.PriorityClassSystemCritical}, Value: 999998950})
	w.create(w.garden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}})
	w.create(w.garden, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "filter"}, Data: map[string]string{"rules": "none"}})
	fleet.SetImages(t, "pause", "resource-manager", "etcd-operator", "etcd-member", "vpa-admission-controller", "vpa-recommender", "vpa-updater",
		nginxingress.Image, nginxingress.ImageBackend)
	return w
}

func (w *world) create(c client.Client, object client.Object) {
	w.Helper()
	fleet.Create(w.Context(), w, c, object)
}

// gardenlet runs the controllers of the Seed until the returned function is called. It returns the recorded requests
// to the garden and the seed.
func (w *world) gardenlet(name string) (toGarden, toSeed *kit.Requests, stop func()) {
	w.Helper()
	return w.gardenletWith(name, clock.RealClock{})
}

func (w *world) gardenletWith(name string, clk clock.Clock, change ...func(*gardenletv1alpha1.GardenletConfiguration)) (toGarden, toSeed *kit.Requests, stop func()) {
	w.Helper()
	toGarden, toSeed = &kit.Requests{}, &kit.Requests{}
	config, gardenConfig := w.seeds.Config(), w.gardens.Config()
	config.Wrap(toSeed.Wrap)
	gardenConfig.Wrap(toGarden.Wrap)
	gardenConfig.QPS, config.QPS = -1, -1
	config.Impersonate = rest.ImpersonationConfig{UserName: seedUser, Groups: seedGroups}
	options := kit.ManagerOptions(w.scheme)
	options.Cache.NewInformer = rewatch.NewInformer
	mgr, err := manager.New(config, options)
	kit.Must(w, err)
	garden, err := cluster.New(gardenConfig, func(o *cluster.Options) { o.Scheme, o.Cache.NewInformer = w.scheme, rewatch.NewInformer })
	kit.Must(w, err)
	kit.Must(w, mgr.Add(garden))
	configuration := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(configuration)
	configuration.Controllers.SeedCare.ConditionThresholds = []gardenletv1alpha1.ConditionThreshold{
		{Type: string(corev1beta1.SeedSystemComponentsHealthy), Duration: metav1.Duration{Duration: careThreshold}},
	}
	for _, each := range change {
		each(configuration)
	}
	kit.Must(w, seedflow.AddToManager(mgr, garden, seedflow.Options{
		SeedName: name, Namespace: constants.GardenNamespace, Config: configuration, Clock: clk, Version: "v1",
		Identity: &corev1beta1.Gardener{ID: "gardenlet-0", Name: "gardenlet", Version: "v1"},
	}))
	return toGarden, toSeed, kit.Run(w, mgr)
}

// declare creates the example Seed without a backup, and the extensions that it needs.
func (w *world) declare(name string) *corev1beta1.Seed {
	w.Helper()
	seed := w.example(name)
	seed.Spec.Backup = nil
	kit.Must(w, w.garden.Create(w.Context(), seed))
	w.register(name)
	return seed
}

// example returns the example Seed.
func (w *world) example(name string) *corev1beta1.Seed {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "core", "seed.yaml"))
	kit.Must(w, err)
	seed := &corev1beta1.Seed{}
	kit.Must(w, yaml.UnmarshalStrict(text, seed))
	seed.Name = name
	return seed
}

// register creates the registration of the extensions that the example needs. It is deleted at the end of the test.
func (w *world) register(name string) {
	w.Helper()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, each := range []string{"DNSRecord/local", "ControlPlane/local", "Infrastructure/local", "Worker/local", "Extension/networking-filter"} {
		kind, typ, _ := strings.Cut(each, "/")
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: typ})
	}
	kit.Must(w, w.garden.Create(w.Context(), registration))
	w.Cleanup(func() {
		kit.Must(w, client.IgnoreNotFound(w.garden.Delete(context.WithoutCancel(w.Context()), registration)))
	})
}

// install acts as the controllers of extensions: it creates the installation, which is ready at once.
func (w *world) install(name string) *corev1beta1.ControllerInstallation {
	w.Helper()
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	installation.Spec.RegistrationRef.Name, installation.Spec.SeedRef = name, &corev1.ObjectReference{Name: name}
	kit.Must(w, w.garden.Create(w.Context(), installation))
	for kind, status := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
		corev1beta1.ControllerInstallationValid: "True", corev1beta1.ControllerInstallationInstalled: "True",
		corev1beta1.ControllerInstallationHealthy: "True", corev1beta1.ControllerInstallationProgressing: "False",
	} {
		installation.Status.Conditions = append(installation.Status.Conditions, corev1beta1.Condition{
			Type: kind, Status: status, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(), Reason: "Test", Message: "ready",
		})
	}
	kit.WriteStatus(w, w.garden, installation)
	return installation
}

func (w *world) get(name string) *corev1beta1.Seed {
	w.Helper()
	seed := &corev1beta1.Seed{}
	err := w.garden.Get(w.Context(), client.ObjectKey{Name: name}, seed)
	if apierrors.IsNotFound(err) {
		return nil
	}
	kit.Must(w, err)
	return seed
}

// eventually waits until the last operation has a state and a text, and the condition of the system components a
// status.
func (w *world) eventually(name string, state corev1beta1.LastOperationState, text string, healthy corev1beta1.ConditionStatus) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, fmt.Sprintf("the Seed reports %s %q", state, text), func() string {
		seed := w.get(name)
		last := seed.Status.LastOperation
		at := slices.IndexFunc(seed.Status.Conditions, func(condition corev1beta1.Condition) bool {
			return condition.Type == corev1beta1.SeedSystemComponentsHealthy
		})
		switch {
		case last == nil || last.State != state || !strings.Contains(last.Description, text) || seed.Status.ObservedGeneration != seed.Generation:
			return fmt.Sprintf("last operation %+v\n%s", last, w.bundles())
		case healthy != "" && (at < 0 || seed.Status.Conditions[at].Status != healthy):
			return fmt.Sprintf("conditions %+v", seed.Status.Conditions)
		}
		return ""
	})
}

// bundles describes the ManagedResources for an error message.
func (w *world) bundles() string {
	var list resourcesv1alpha1.ManagedResourceList
	if err := w.seed.List(w.Context(), &list); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, mr := range list.Items {
		fmt.Fprintf(&text, "%s deleting %t", mr.Name, mr.DeletionTimestamp != nil)
		for _, condition := range mr.Status.Conditions {
			fmt.Fprintf(&text, " %s=%s (%s: %.150s)", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// writes returns the write requests.
func writes(requests *kit.Requests) []string { return requests.Writes() }

// quiet waits until no request was sent for a while.
func quiet(t *testing.T, all ...*kit.Requests) {
	t.Helper()
	kit.Quiet(t, all...)
}

// objects lists all objects of the seed.
func (w *world) objects() map[string]bool {
	w.Helper()
	found := map[string]bool{}
	for name := range w.contents() {
		found[name] = true
	}
	return found
}
