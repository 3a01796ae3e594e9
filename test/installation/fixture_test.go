// Package installation tests the life cycle of extensions in a seed, from registration to removal. It runs the controllers
// of the garden and of gardenlet with a garden and a seed cluster, both with real API servers, and a resource-manager. The
// Pods of the seed are simulated.
package installation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sigs.k8s.io/yaml"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/controllerregistration"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/installation"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

const seedName = "local"

// gardens accept the tokens of token requestors. Their audience is that of Gardener.
var gardens = garden.Shared{Options: garden.Options{ControlPlane: controlplane.Options{
	APIServerArgs: map[string][]string{"api-audiences": {"https://kubernetes.default.svc.cluster.local", "gardener"}},
}}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(gardens.Run(m))
}

// world is a garden with a Seed and the seed cluster.
type world struct {
	*testing.T
	scheme       *runtime.Scheme
	garden, seed client.Client
	gardens      *garden.Garden
	seeds        *controlplane.ControlPlane
	// stop stops the running gardenlet.
	stop func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	f := fleet.Start(t, &gardens, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1})
	w := &world{T: t, scheme: f.Scheme, garden: f.Garden, seed: f.Seed, gardens: f.Gardens, seeds: f.Seeds}
	kit.DefineManagedResources(t, w.seeds.Config())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	w.read(definition, "config", "crd", "extensions", "extensions.gardener.cloud_infrastructures.yaml")
	kit.Define(t, w.seeds.Config(), definition)
	for in, names := range map[client.Client][]string{w.seed: {"garden", "shoot--dev--web"}, w.garden: {"garden", "seed-" + seedName}} {
		for _, name := range names {
			w.create(in, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return w
}

func (w *world) create(c client.Client, object client.Object) {
	w.Helper()
	fleet.Create(w.Context(), w, c, object)
}

// read reads an object from a file of the repository.
func (w *world) read(into any, path ...string) {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	kit.Must(w, err)
	kit.Must(w, yaml.Unmarshal(text, into))
}

// controllerManager runs the controllers of the garden, and returns their requests.
func (w *world) controllerManager() (requests *kit.Requests) {
	w.Helper()
	requests = &kit.Requests{}
	config := w.gardens.Config()
	config.Wrap(requests.Wrap)
	config.QPS = -1
	options := kit.ManagerOptions(w.scheme)
	fleet.RunControllers(w, config, options, controllerregistration.Controller())
	return requests
}

// gardenlet runs the controller of extensions and the token requestor for the garden until stop is called. It returns the
// requests to the garden and the seed.
func (w *world) gardenlet() (toGarden, toSeed *kit.Requests) {
	w.Helper()
	toGarden, toSeed = &kit.Requests{}, &kit.Requests{}
	config, gardenConfig := w.seeds.Config(), w.gardens.Config()
	address := rest.AnonymousClientConfig(gardenConfig)
	kit.Must(w, rest.LoadTLSFiles(address))
	config.Wrap(toSeed.Wrap)
	gardenConfig.Wrap(toGarden.Wrap)
	gardenConfig.QPS, config.QPS = -1, -1
	mgr, err := manager.New(config, kit.ManagerOptions(w.scheme))
	kit.Must(w, err)
	garden, err := cluster.New(gardenConfig, func(o *cluster.Options) { o.Scheme = w.scheme })
	kit.Must(w, err)
	kit.Must(w, mgr.Add(garden))
	objects, err := target.NewObjects(config, mgr.GetHTTPClient())
	kit.Must(w, err)
	seed := installation.Seed{Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects}
	kit.Must(w, installation.AddToManager(mgr, garden, seed, installation.Options{
		SeedName: seedName, Namespace: "garden", Version: "v1", Clock: clock.RealClock{}, ConcurrentSyncs: 5,
		Garden: kubeconfig.ClusterOf(address),
	}))
	w.addTokenRequestor(mgr, gardenConfig, address)
	w.stop = kit.Run(w, mgr)
	return toGarden, toSeed
}

func (w *world) addTokenRequestor(mgr manager.Manager, config, address *rest.Config) {
	w.Helper()
	kube, err := kubernetes.NewForConfig(config)
	kit.Must(w, err)
	metadataClient, err := metadata.NewForConfig(config)
	kit.Must(w, err)
	reconciler := &tokenrequestor.Reconciler{
		Source: mgr.GetClient(), Direct: mgr.GetAPIReader(), Core: kube.CoreV1(), Reviews: kube.AuthenticationV1().TokenReviews(), Metadata: metadataClient,
		Target: address, ServerClock: tokenrequestor.NewServerClock(clock.RealClock{}), Recorder: mgr.GetEventRecorder("gardenlet"),
		Metrics: tokenrequestor.NewMetrics(prometheus.NewRegistry()), Clock: clock.RealClock{}, Random: rand.Float64,
		Options: tokenrequestor.Options{Class: resourcesv1alpha1.ClassGarden, AccountNamespace: "seed-" + seedName, TargetNamespaces: []string{"seed-" + seedName}, ConcurrentSyncs: 1},
	}
	kit.Must(w, reconciler.AddToManager(mgr))
}

// archive returns the archive of a chart with templates.
func (w *world) archive(templates map[string]string) []byte {
	w.Helper()
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	writer := tar.NewWriter(zipped)
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.0.0\n", "values.yaml": "replicas: 1\n"}
	for name, text := range templates {
		files["templates/"+name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		kit.Must(w, writer.WriteHeader(&tar.Header{Name: "example/" + name, Mode: 0o644, Size: int64(len(files[name]))}))
		_, err := writer.Write([]byte(files[name]))
		kit.Must(w, err)
	}
	kit.Must(w, writer.Close())
	kit.Must(w, zipped.Close())
	return content.Bytes()
}

// chart is the template of an extension with a Deployment.
const chart = `apiVersion: apps/v1
kind: Deployment
metadata: {name: example, namespace: {{ .Release.Namespace }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: example}}
  template:
    metadata: {labels: {app: example}}
    spec:
      containers:
      - name: example
        image: registry.example.org/example
        env:
        - {name: GARDEN, value: {{ .Values.gardener.garden.clusterIdentity | quote }}}
        - {name: GARDEN_UID, value: {{ .Values.gardener.garden.identifier | quote }}}
`

// register creates a registration and a deployment with a chart.
func (w *world) register(name string, policy corev1beta1.ControllerDeploymentPolicy, ids ...string) *gardencorev1.ControllerDeployment {
	w.Helper()
	inject := true
	deployment := &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name}, InjectGardenKubeconfig: &inject,
		Helm: &gardencorev1.HelmControllerDeployment{RawChart: w.archive(map[string]string{"deployment.yaml": chart})},
	}
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	registration.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{Policy: &policy, DeploymentRefs: []corev1beta1.DeploymentRef{{Name: name}}}
	for _, id := range ids {
		kind, typ, _ := strings.Cut(id, "/")
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: typ})
	}
	w.create(w.garden, deployment)
	w.create(w.garden, registration)
	return deployment
}

// installation returns the installation of a registration. It is nil if the installation does not exist.
func (w *world) installation(registration string) *corev1beta1.ControllerInstallation {
	w.Helper()
	var list corev1beta1.ControllerInstallationList
	kit.Must(w, w.garden.List(w.Context(), &list, client.MatchingFields{"spec.registrationRef.name": registration}))
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// conditions returns the sorted conditions of an installation, for example "Valid=True RegistrationValid".
func conditions(installation *corev1beta1.ControllerInstallation) string {
	if installation == nil {
		return "there is no installation"
	}
	var texts []string
	for _, condition := range installation.Status.Conditions {
		texts = append(texts, string(condition.Type)+"="+string(condition.Status)+" "+condition.Reason)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// message returns the message of a condition.
func message(installation *corev1beta1.ControllerInstallation, kind corev1beta1.ConditionType) string {
	for _, condition := range installation.Status.Conditions {
		if condition.Type == kind {
			return condition.Message
		}
	}
	return ""
}

// eventually waits until an installation has the wanted conditions.
func (w *world) eventually(registration, want string) {
	w.Helper()
	kit.Eventually(w, "the extension "+registration+" is "+want, func() string {
		if found := w.installation(registration); conditions(found) != want {
			text := "conditions: " + conditions(found)
			if found != nil {
				for _, condition := range found.Status.Conditions {
					text += "\n" + condition.Message
				}
			}
			return text
		}
		return ""
	})
}

// writes returns the requests that change objects.
func writes(requests *kit.Requests) []string {
	return slices.DeleteFunc(requests.Writes(), func(sent string) bool { return strings.HasSuffix(sent, "/tokenreviews") })
}

// quiet waits until no requests have been sent for some time.
func quiet(t *testing.T, all ...*kit.Requests) {
	t.Helper()
	kit.Quiet(t, all...)
}
