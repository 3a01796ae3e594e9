package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/extension/health"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// planOf returns a plan with a ConfigMap in the Shoot, and one in the seed that depends on it. If Fail is set, it makes the
// name of the ConfigMap in the Shoot invalid.
func planOf(_ context.Context, object *extensionsv1alpha1.Network, _ *extension.Cluster) (flow.Plan, error) {
	var set settings
	if err := json.Unmarshal(object.Spec.ProviderConfig.Raw, &set); err != nil {
		return flow.Plan{}, err
	}
	bundle := func(bundle flow.Bundle, name string) flow.Bundle {
		bundle.Objects = []client.Object{&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: name}, Data: map[string]string{"text": set.Text},
		}}
		return bundle
	}
	shoot := bundle(bundles.Shoot(object.Namespace, "in-shoot"), "in-shoot"+set.Fail)
	seed := bundle(bundles.Seed(object.Namespace, "in-seed"), "in-seed")
	seed.Spec.DependsOn = []resourcesv1alpha1.Dependency{flow.On(shoot.Key)}
	return flow.Plan{Bundles: []flow.Bundle{shoot, seed}}, nil
}

// deploys runs an extension that deploys bundles until the returned function is called. It returns the extension's
// requests.
func (w *world) deploys() (manager.Manager, *kit.Requests, func()) {
	w.Helper()
	mgr, requests := w.manager()
	deployer, err := bundles.NewDeployer(w.Context(), mgr, bundles.Options{Name: "network-test", Version: "v1"})
	kit.Must(w, err)
	actuator := bundles.NewActuator(deployer, "network", planOf)
	kit.Must(w, extension.AddToManager(mgr, actuator, extension.Options{Type: "bundles", Sources: actuator.Sources(), RateLimiter: quickly()}))
	kit.Must(w, health.AddToManager(mgr, health.Options[*extensionsv1alpha1.Network]{
		Type: "bundles", Sources: actuator.Sources(), Checks: []health.Check[*extensionsv1alpha1.Network]{{
			Condition: health.SystemComponentsHealthy, Look: health.ManagedResource[*extensionsv1alpha1.Network](deployer.Reader(), "in-shoot"),
		}},
	}))
	return mgr, requests, kit.Run(w, mgr)
}

// applies runs the resource-manager of a class in a namespace until the returned function is called.
func (w *world) applies(class, namespace string) (stop func()) {
	w.Helper()
	parts, err := inprocess.ResourceManager{
		Scheme: w.scheme, Source: w.cp.Config(), Target: w.cp.Config(), Class: class, Identity: "of-" + class, Namespaces: []string{namespace},
	}.New(w.Context())
	kit.Must(w, err)
	return kit.Run(w, parts.Manager)
}

func (w *world) network(namespace string) *extensionsv1alpha1.Network {
	w.Helper()
	network := &extensionsv1alpha1.Network{}
	w.read("network", namespace, network)
	network.Spec.Type = "bundles"
	return network
}

// texts returns the contents of an extension's ConfigMaps.
func (w *world) texts(namespace string) string {
	w.Helper()
	var found []string
	for _, name := range []string{"in-shoot", "in-seed"} {
		config := &corev1.ConfigMap{}
		err := w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, config)
		if !apierrors.IsNotFound(err) {
			kit.Must(w, err)
			found = append(found, name+" "+config.Data["text"])
		}
	}
	return strings.Join(found, ", ")
}

// TestBundles checks that the health of an extension's objects determines the last operation. A migration keeps the objects
// in the Shoot. A deletion deletes all objects. A forced deletion does not wait for the Shoot's resource-manager.
func TestBundles(t *testing.T) {
	w := newWorld(t)
	const shoot = "shoot--dev--bundles"
	w.shoot(shoot, nil)
	w.applies(bundles.ClassSeed, shoot)
	stopOfShoot := w.applies(resourcesv1alpha1.DefaultClass, shoot)
	mgr, requests, stop := w.deploys()

	network := w.network(shoot)
	start := func(text string) {
		t.Helper()
		network = w.network(shoot)
		configure(network, settings{Text: text})
		flow.AskExtension(network, constants.OperationReconcile, time.Now())
		kit.Must(t, w.client.Create(t.Context(), network))
	}
	expect := func(want string) {
		t.Helper()
		if got := w.texts(shoot); got != want {
			t.Errorf("the ConfigMaps are %q, want %q", got, want)
		}
	}
	start("hello")
	w.eventually(network, "Create Succeeded")
	expect("in-shoot hello, in-seed hello")
	w.eventuallyCondition(network, corev1beta1.ConditionTrue)
	w.restOfBundles(mgr, requests, network, stop)

	w.ask(network, constants.OperationReconcile, settings{Text: "hello", Fail: "_NO_NAME"})
	w.eventually(network, "Reconcile Error")
	if failed := network.Status.LastError; !slices.Equal(failed.Codes, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) || !strings.Contains(failed.Description, "in-shoot_NO_NAME") {
		t.Errorf("the error is %+v", failed)
	}
	w.eventuallyCondition(network, corev1beta1.ConditionFalse)
	w.ask(network, constants.OperationReconcile, settings{Text: "bye"})
	w.eventually(network, "Reconcile Succeeded")
	expect("in-shoot bye, in-seed bye")

	w.ask(network, constants.OperationMigrate, settings{Text: "bye"})
	w.eventually(network, "Migrate Succeeded")
	expect("in-shoot bye")
	kit.Must(t, w.client.Delete(t.Context(), network))
	w.eventuallyGone(network)

	start("again")
	w.eventually(network, "Create Succeeded")
	expect("in-shoot again, in-seed again")
	kit.Must(t, w.client.Delete(t.Context(), network))
	w.eventuallyGone(network)
	expect("")

	start("last")
	w.eventually(network, "Create Succeeded")
	stopOfShoot()
	kit.Must(t, w.client.Delete(t.Context(), network))
	w.eventually(network, "Delete Processing")
	w.changeShoot(shoot, func(shoot *corev1beta1.Shoot) {
		shoot.DeletionTimestamp = ptr.To(metav1.Now())
		shoot.Annotations = map[string]string{constants.AnnotationConfirmationForceDeletion: "true"}
	})
	w.eventuallyGone(network)
	expect("in-shoot last")
}

func (w *world) eventuallyCondition(network *extensionsv1alpha1.Network, want corev1beta1.ConditionStatus) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("the condition is %s", want), func() string {
		kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(network), network))
		for _, condition := range network.Status.Conditions {
			if condition.Type == health.SystemComponentsHealthy && condition.Status == want {
				return ""
			}
		}
		return fmt.Sprintf("%+v", network.Status.Conditions)
	})
}

// restOfBundles checks that no requests are sent at rest, and that nothing is written after a restart. It leaves another
// process of the extension running.
func (w *world) restOfBundles(mgr manager.Manager, requests *kit.Requests, network *extensionsv1alpha1.Network, stop func()) {
	w.Helper()
	w.quiet(requests)
	w.atRest(mgr, requests, []extensionsv1alpha1.Object{network})
	stop()
	mgr, requests, _ = w.deploys()
	kit.EventuallyTrue(w, "the caches are filled", func() bool { return mgr.GetCache().WaitForCacheSync(w.Context()) })
	w.quiet(requests)
	for _, request := range requests.Single() {
		if request.Method != http.MethodGet {
			w.Errorf("after a restart: %s", request)
		}
	}
}
