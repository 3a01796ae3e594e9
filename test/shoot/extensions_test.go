package shoot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/test/kit"
)

// standIn simulates extensions. It records its calls, and whether the shoot's API server was declared at the time.
type standIn struct {
	seed  client.Client
	mu    sync.Mutex
	calls []string
}

func (s *standIn) note(ctx context.Context, verb string, object client.Object) {
	call := verb + " " + object.GetName()
	if _, is := object.(*extensionsv1alpha1.DNSRecord); is && verb == "reconcile" {
		call += " at any time"
	} else if err := s.seed.Get(ctx, client.ObjectKey{Namespace: technical, Name: "kube-apiserver"}, &appsv1.Deployment{}); apierrors.IsNotFound(err) {
		call += " without server"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

// called returns the calls since its last call, without duplicates.
func (s *standIn) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := slices.Clone(s.calls)
	s.calls = nil
	slices.Sort(calls)
	return slices.Compact(calls)
}

// actuator is the part of a standIn for one kind.
type actuator[T extensionsv1alpha1.Object] struct{ *standIn }

func (a actuator[T]) Reconcile(ctx context.Context, object T, _ *extension.Cluster) (extension.Result, error) {
	a.note(ctx, "reconcile", object)
	if object.GetName() == "failing" {
		return extension.Result{}, extension.WithCodes(errors.New("no more networks in this project"), corev1beta1.ErrorInfraQuotaExceeded)
	}
	return extension.Done(), nil
}

func (a actuator[T]) Delete(ctx context.Context, object T, _ *extension.Cluster) (extension.Result, error) {
	a.note(ctx, "delete", object)
	return extension.Done(), nil
}

func (a actuator[T]) ForceDelete(ctx context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	return a.Delete(ctx, object, cluster)
}

func (a actuator[T]) Migrate(context.Context, T, *extension.Cluster) (extension.Result, error) {
	return extension.Done(), nil
}

func (a actuator[T]) Restore(context.Context, T, *extension.Cluster) (extension.Result, error) {
	return extension.Done(), nil
}

// extensions registers extensions in the garden and runs their controllers in the seed, except for the type silent.
func (w *world) extensions() *standIn {
	w.Helper()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "stand-in"}}
	add := func(kind string, change ...func(*corev1beta1.ControllerResource)) {
		resource := corev1beta1.ControllerResource{Kind: corev1beta1.KindExtension, Type: kind, WorkerlessSupported: ptr.To(true)}
		for _, each := range change {
			each(&resource)
		}
		registration.Spec.Resources = append(registration.Spec.Resources, resource)
	}
	add("early", func(resource *corev1beta1.ControllerResource) {
		resource.Lifecycle = &corev1beta1.ControllerResourceLifecycle{Reconcile: ptr.To(corev1beta1.BeforeKubeAPIServer), Delete: ptr.To(corev1beta1.AfterKubeAPIServer)}
	})
	add("late", func(resource *corev1beta1.ControllerResource) {
		resource.AutoEnable = []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}
	})
	add("usual")
	add("failing")
	add("silent", func(resource *corev1beta1.ControllerResource) {
		resource.ReconcileTimeout = &metav1.Duration{Duration: 2 * time.Second}
	})
	add("workers", func(resource *corev1beta1.ControllerResource) { resource.WorkerlessSupported = nil })
	registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: corev1beta1.KindDNSRecord, Type: "local"})
	kit.Must(w, w.garden.Create(w.Context(), registration))
	w.Cleanup(func() { kit.Must(w, w.garden.Delete(context.Background(), registration)) }) // other tests use the same garden

	mgr, err := manager.New(w.seeds.Config(), kit.ManagerOptions(w.scheme))
	kit.Must(w, err)
	answers := &standIn{seed: w.seed}
	for _, kind := range []string{"early", "late", "usual", "failing", "workers"} {
		kit.Must(w, extension.AddToManager(mgr, actuator[*extensionsv1alpha1.Extension]{answers}, extension.Options{Type: kind}))
	}
	kit.Must(w, extension.AddToManager(mgr, actuator[*extensionsv1alpha1.DNSRecord]{answers}, extension.Options{Type: "local"}))
	kit.Run(w, mgr)
	return answers
}

// serveInternalDomain configures a DNS service of a type for the internal domain of the Seed until the test ends.
func (w *world) serveInternalDomain(kind string) {
	w.Helper()
	seed := &corev1beta1.Seed{}
	set := func(ctx context.Context, kind string) {
		kit.Must(w, w.garden.Get(ctx, client.ObjectKey{Name: seedName}, seed))
		seed.Spec.DNS.Internal.Type = kind
		kit.Must(w, w.garden.Update(ctx, seed))
		seed.Status.ObservedGeneration = seed.Generation
		kit.Must(w, w.garden.Status().Update(ctx, seed))
	}
	set(w.Context(), kind)
	w.Cleanup(func() { set(context.Background(), corev1beta1.DNSUnmanaged) })
}

// TestExtensions checks the extension objects of a Shoot through its life cycle.
func TestExtensions(t *testing.T) {
	w := newWorld(t)
	w.serveInternalDomain("local")
	w.create(w.garden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
	w.create(w.garden, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "internal-domain"}, Data: map[string][]byte{"key": []byte("dns")}})
	w.create(w.garden, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"mode": "fast"}})
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	answers := w.extensions()
	toGarden, toSeed, stop := w.gardenlet()

	w.declare(func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Extensions = []corev1beta1.Extension{{Type: "early", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"size":"small"}`)}}, {Type: "usual"}}
		shoot.Spec.Resources = []corev1beta1.NamedResourceReference{
			{Name: "settings", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}},
		}
	})
	w.startServer()
	w.startManager()
	shoot := w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	w.expect(answers, "reconcile early without server", "reconcile late", "reconcile one-internal at any time", "reconcile usual")
	w.checkExtensionObjects(shoot)
	quiet(t, toGarden, toSeed)
	toGarden.Forget()
	toSeed.Forget()
	quiet(t, toGarden, toSeed)
	if rest := slices.Concat(toGarden.All(), toSeed.All()); len(rest) > 0 {
		t.Errorf("requests at rest: %v", rest)
	}
	w.expect(answers)

	w.change(func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Extensions = []corev1beta1.Extension{{Type: "early"}, {Type: "late", Disabled: ptr.To(true)}}
	})
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
	w.expect(answers, "delete late", "delete usual", "reconcile early")

	w.change(func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Extensions = append(shoot.Spec.Extensions, corev1beta1.Extension{Type: "failing"})
	})
	shoot = w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateFailed, "more networks in this project")
	w.checkError(shoot, "shoot-extension-failing", corev1beta1.ErrorInfraQuotaExceeded)
	w.clusterHasFailed(true)
	w.maintainedWhileFailed(answers)
	w.change(func(shoot *corev1beta1.Shoot) { shoot.Spec.Extensions[2].Type = "silent" })
	shoot = w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateError, "Not in time: the extension silent has not finished its operation, which may take 2s")
	w.checkError(shoot, "shoot-extension-silent")
	w.clusterHasFailed(false)
	w.change(func(shoot *corev1beta1.Shoot) { shoot.Spec.Extensions[2].Type = "workers" })
	shoot = w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateFailed, "spec.extensions[2]: the extension workers does not support Shoots without workers")
	w.checkError(shoot, "extensions-valid", corev1beta1.ErrorConfigurationProblem)
	w.clusterHasFailed(true)
	w.change(func(shoot *corev1beta1.Shoot) { shoot.Spec.Extensions[2].Type = "usual" })
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
	answers.called()

	w.deletion()
	w.expect(answers, "delete early without server", "delete one-internal without server", "delete usual")
	stop()
}

// change changes the Shoot.
func (w *world) change(change func(*corev1beta1.Shoot)) {
	w.Helper()
	shoot := w.get()
	kit.Change(w, w.garden, shoot, func() { change(shoot) })
}

// expect checks the calls of extensions since the last check.
func (w *world) expect(answers *standIn, want ...string) {
	w.Helper()
	if got := answers.called(); !slices.Equal(got, want) {
		w.Errorf("the calls of extensions are %q, want %q", got, want)
	}
}

// checkError checks the only error of the Shoot.
func (w *world) checkError(shoot *corev1beta1.Shoot, task string, codes ...corev1beta1.ErrorCode) {
	w.Helper()
	if errs := shoot.Status.LastErrors; len(errs) != 1 || ptr.Deref(errs[0].TaskID, "") != task || !slices.Equal(errs[0].Codes, codes) {
		w.Errorf("the errors are %+v, want one error of %s with the codes %v", errs, task, codes)
	}
}

// clusterHasFailed waits until extensions see in the Cluster whether the Shoot has failed.
func (w *world) clusterHasFailed(failed bool) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("extensions see that the Shoot has failed: %t", failed), func() string {
		cluster, err := extension.GetCluster(w.Context(), w.seed, technical)
		if err != nil || cluster.Failed() != failed {
			return fmt.Sprintf("%v, %+v", err, cluster)
		}
		return ""
	})
}

// checkExtensionObjects checks that the objects match the Shoot, and that the DNS record contains the address of the API server.
func (w *world) checkExtensionObjects(shoot *corev1beta1.Shoot) {
	w.Helper()
	early, record, service, copied := &extensionsv1alpha1.Extension{}, &extensionsv1alpha1.DNSRecord{}, &corev1.Service{}, &corev1.ConfigMap{}
	for name, object := range map[string]client.Object{"early": early, "one-internal": record, "kube-apiserver": service, "ref-settings": copied} {
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: name}, object))
	}
	if early.Spec.ProviderConfig == nil || !strings.Contains(string(early.Spec.ProviderConfig.Raw), "small") || copied.Data["mode"] != "fast" {
		w.Errorf("the extension has %+v, the copy %v", early.Spec, copied.Data)
	}
	spec := record.Spec
	if got, want := fmt.Sprintf("%s %s %v", spec.Name, spec.RecordType, spec.Values), fmt.Sprintf("api.one.dev.internal.example.org A [%s]", service.Spec.ClusterIP); got != want {
		w.Errorf("the record is %s, want %s", got, want)
	}
	if len(shoot.Status.AdvertisedAddresses) == 0 || shoot.Status.AdvertisedAddresses[0].URL != "https://"+spec.Name {
		w.Errorf("the status advertises %v", shoot.Status.AdvertisedAddresses)
	}
	secret := &corev1.Secret{}
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: spec.SecretRef.Name}, secret))
	if string(secret.Data["key"]) != "dns" {
		w.Error("the credentials of the DNS service are not those of the garden")
	}
	clusterNamespace := &corev1.Namespace{}
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Name: technical}, clusterNamespace))
	for _, kind := range []string{"early", "late", "usual"} {
		if clusterNamespace.Labels["extensions.extensions.gardener.cloud/"+kind] != "true" {
			w.Errorf("the namespace has the labels %v", clusterNamespace.Labels)
		}
	}
}
