package backupmove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupbucket"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupentry"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// failures is how many writes of each object fail. Not every second one may: a controller writes the status after a failure, and this write would
// always succeed instead of the one before.
const failures = 3

// fixture is a garden with the Seeds a and b.
type fixture struct {
	*testing.T
	scheme *runtime.Scheme
	garden client.Client
	seeds  map[string]*seed
}

// seed is a seed with its gardenlet, resource-manager and extension.
type seed struct {
	name   string
	config *rest.Config
	client.Client
	// gardenlet is the garden with the rights of the gardenlet.
	gardenlet client.Client
	// failing is set while the first writes of each object by the controllers fail. attempts counts these writes by object, and failed those that
	// failed.
	failing  atomic.Bool
	mu       sync.Mutex
	attempts map[string]int
	failed   int
}

// startGarden starts a garden that stops at the end of the test.
func startGarden(t *testing.T) *garden.Garden {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	server, err := garden.Binary()
	kit.Must(t, err)
	plane, err := garden.Start(t.Context(), garden.Options{APIServer: server})
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, plane.KillAPIServer()) // a graceful stop would wait for watches to end
		kit.Must(t, plane.Stop())
	})
	return plane
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, scheme: runtime.NewScheme(), seeds: map[string]*seed{}}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, served.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	} {
		kit.Must(t, add(f.scheme))
	}
	plane := startGarden(t)
	var err error
	f.garden, err = client.New(plane.Config(), client.Options{Scheme: f.scheme})
	kit.Must(t, err)
	for _, name := range []string{constants.GardenNamespace, constants.SystemPublicNamespace, constants.SystemSeedLeaseNamespace, project} {
		fleet.Create(t.Context(), t, f.garden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	charts.Apply(t, f.garden, "gardenlet", map[string]any{"mode": "garden", "seeds": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}}, charts.IsRight)
	fleet.GrantRights(t, plane.Config(), f.garden)
	// The garden and the seed a share a cluster: they have no objects in common.
	other, err := controlplane.Start(t.Context(), controlplane.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, other.Stop()) })
	for name, config := range map[string]*rest.Config{"a": plane.Config(), "b": other.Config()} {
		f.seeds[name] = f.newSeed(name, config, plane.Config())
	}
	return f
}

func (f *fixture) newSeed(name string, config, garden *rest.Config) *seed {
	f.Helper()
	s := &seed{name: name, config: rest.CopyConfig(config), attempts: map[string]int{}}
	var err error
	s.Client, err = client.New(s.config, client.Options{Scheme: f.scheme})
	kit.Must(f, err)
	kit.DefineManagedResources(f, s.config)
	for _, kind := range []string{"backupbuckets", "backupentries"} {
		kit.Define(f, s.config, f.definition(kind))
	}
	fleet.Create(f.Context(), f, s.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}})
	kit.Answer(f, s.Client, s.answer, extensionsv1alpha1.SchemeGroupVersion.WithKind("BackupBucket"), extensionsv1alpha1.SchemeGroupVersion.WithKind("BackupEntry"))
	parts, err := inprocess.ResourceManager{Scheme: f.scheme, Source: s.config, Target: s.config, Namespaces: []string{constants.GardenNamespace}, Class: "seed", Identity: "seed-" + name}.New(f.Context())
	kit.Must(f, err)
	kit.Run(f, parts.Manager)
	f.run(s, garden)
	return s
}

// definition returns the definition of a kind of extension objects.
func (f *fixture) definition(plural string) *apiextensionsv1.CustomResourceDefinition {
	f.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(f, err)
	text, err := os.ReadFile(filepath.Join(root, "config", "crd", "extensions", "extensions.gardener.cloud_"+plural+".yaml"))
	kit.Must(f, err)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	kit.Must(f, yaml.Unmarshal(text, definition))
	return definition
}

// run runs the controllers of the gardenlet.
func (f *fixture) run(s *seed, toGarden *rest.Config) {
	f.Helper()
	toGarden, toSeed := rest.CopyConfig(toGarden), rest.CopyConfig(s.config)
	toGarden.Impersonate = rest.ImpersonationConfig{UserName: constants.PrefixSeedUser + s.name, Groups: []string{constants.SeedsGroup, "system:authenticated"}}
	toGarden.Wrap(s.fail)
	toSeed.Wrap(s.fail)
	var err error
	s.gardenlet, err = client.New(toGarden, client.Options{Scheme: f.scheme})
	kit.Must(f, err)
	garden, err := cluster.New(toGarden, func(options *cluster.Options) {
		options.Scheme = f.scheme
		options.Cache.ByObject = map[client.Object]cache.ByObject{ // as cmd/gardenlet
			&corev1beta1.BackupBucket{}: {Field: fields.OneTermEqualSelector("spec.seedName", s.name)},
			&corev1beta1.BackupEntry{}:  {Label: labels.SelectorFromSet(labels.Set{constants.LabelPrefixSeedName + s.name: "true"})},
		}
		options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1beta1.ShootState{}}}
	})
	kit.Must(f, err)
	mgr, err := manager.New(toSeed, kit.ManagerOptions(f.scheme))
	kit.Must(f, err)
	of, err := cache.New(toSeed, cache.Options{Scheme: f.scheme, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	kit.Must(f, err)
	emitted, err := flow.IndexOwners(f.Context(), of)
	kit.Must(f, err)
	objects := gardenobjects.New(garden)
	kit.Must(f, errors.Join(mgr.Add(garden), mgr.Add(of), mgr.Add(objects)))
	ofSeed := func() *backup.Seed {
		return &backup.Seed{
			Name: s.name, Namespace: constants.GardenNamespace, Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Emitted: emitted,
			Emitter: &flow.Emitter{
				Reader: emitted, Uncached: mgr.GetAPIReader(), Writer: mgr.GetClient(), FieldManager: backup.FieldManager, Clock: clock.RealClock{},
				Rules: flow.Rules{Scheme: f.scheme, Protected: flow.DefaultProtected(), Version: "v1"},
			},
			Garden: garden.GetClient(), GardenReader: garden.GetAPIReader(), Objects: objects, Clock: clock.RealClock{},
		}
	}
	kit.Must(f, errors.Join(
		backupbucket.AddToManager(mgr, garden, of, ofSeed(), 1),
		backupentry.AddToManager(mgr, garden, of, ofSeed(), &gardenletv1alpha1.BackupEntryController{}, 1),
	))
	kit.Run(f, mgr)
}

// fail makes writes fail while failing is set: before or after the API server has executed them, in turn.
func (s *seed) fail(next http.RoundTripper) http.RoundTripper {
	return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || !s.failing.Load() || strings.Contains(request.URL.Path, "/events") {
			return next.RoundTrip(request)
		}
		s.mu.Lock()
		write := request.Method + " " + request.URL.Path
		s.attempts[write]++
		fails, number := s.attempts[write] <= failures, s.failed
		if fails {
			s.failed++
		}
		s.mu.Unlock()
		switch {
		case !fails:
			return next.RoundTrip(request)
		case number%2 == 0:
			return nil, errors.New("the test fails this write before it is executed")
		}
		response, err := next.RoundTrip(request)
		if err == nil {
			err = errors.Join(response.Body.Close(), errors.New("the test fails this write after it was executed"))
		}
		return nil, err
	})
}

// answer acts as the extension: it completes the operation of an object, and stores in the state of an entry which Seed has it.
func (s *seed) answer(ctx context.Context, object *unstructured.Unstructured) {
	operation := object.GetAnnotations()[constants.AnnotationGardenerOperation]
	if operation == "" || operation == constants.OperationWaitForState {
		return
	}
	kind := map[string]corev1beta1.LastOperationType{
		constants.OperationMigrate: corev1beta1.LastOperationTypeMigrate, constants.OperationRestore: corev1beta1.LastOperationTypeRestore,
	}[operation]
	if kind == "" {
		kind = corev1beta1.LastOperationTypeReconcile
	}
	status := map[string]any{"observedGeneration": object.GetGeneration(), "lastOperation": map[string]any{
		"state": "Succeeded", "type": string(kind), "progress": 100, "description": "done", "lastUpdateTime": metav1.Now().UTC().Format(time.RFC3339),
	}}
	if object.GetKind() == "BackupBucket" {
		generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "made-" + object.GetName()}, Data: map[string][]byte{"user": []byte("of " + s.name)}}
		_ = s.Create(ctx, generated) // it may already exist
		status["generatedSecretRef"] = map[string]any{"namespace": generated.Namespace, "name": generated.Name}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil || s.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)) != nil {
		return
	}
	annotations := object.GetAnnotations()
	if annotations[constants.AnnotationGardenerOperation] != operation {
		return
	}
	delete(annotations, constants.AnnotationGardenerOperation)
	object.SetAnnotations(annotations)
	_ = s.Update(ctx, object) // after a conflict, the newer object is answered
}

// bucket creates the BackupBucket of a Seed, and waits until it is ready.
func (f *fixture) bucket(of string) {
	f.Helper()
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "credentials-" + of}}
	kit.Must(f, f.garden.Create(f.Context(), credentials))
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket-" + of}, Spec: corev1beta1.BackupBucketSpec{
		Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, SeedName: &of,
		CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: credentials.Namespace, Name: credentials.Name},
	}}
	kit.Must(f, f.garden.Create(f.Context(), bucket))
	f.eventually(bucket, func() string { return operationOf(bucket.Status.LastOperation) }, "Reconcile Succeeded", func() *corev1beta1.LastError { return bucket.Status.LastError })
}

func operationOf(last *corev1beta1.LastOperation) string {
	if last == nil {
		return ""
	}
	return string(last.Type) + " " + string(last.State)
}

// eventually waits until an object of the garden has a value. failure is what the object reports otherwise.
func (f *fixture) eventually(object client.Object, value func() string, want string, failure func() *corev1beta1.LastError) {
	f.Helper()
	kit.EventuallyWithin(f, 2*kit.WaitTimeout, fmt.Sprintf("%s has %q", object.GetName(), want), func() string {
		kit.Must(f, f.garden.Get(f.Context(), client.ObjectKeyFromObject(object), object))
		if got := value(); got != want {
			return fmt.Sprintf("%q, %+v", got, failure())
		}
		return ""
	})
}
