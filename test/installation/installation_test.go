package installation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	ready    = "Healthy=True ControllerHealthy, Installed=True InstallationSuccessful, Progressing=False ControllerRolledOut, Required=False NoExtensionObjects, Valid=True RegistrationValid"
	required = "Healthy=True ControllerHealthy, Installed=True InstallationSuccessful, Progressing=False ControllerRolledOut, Required=True ExtensionObjectsExist, Valid=True RegistrationValid"
	invalid  = "Healthy=True ControllerHealthy, Installed=True InstallationSuccessful, Progressing=False ControllerRolledOut, Required=False NoExtensionObjects, Valid=False ChartCannotBeRendered"
)

// TestExtension runs an extension through its life cycle from registration to removal.
func TestExtension(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.seeds.Kubeconfig(), nil, "controllers: {resourceClass: seed}")
	seed := &corev1beta1.Seed{}
	w.read(seed, "examples", "fleet", "core", "seed.yaml")
	seed.Spec.Backup = nil
	kit.Must(t, w.garden.Create(t.Context(), seed))
	fromManager := w.controllerManager()
	toGarden, toSeed := w.gardenlet()

	begun := time.Now()
	deployment := w.register("provider", corev1beta1.ControllerDeploymentPolicyOnDemand, "DNSRecord/local", "ControlPlane/local", "Infrastructure/local", "Worker/local",
		"Extension/networking-filter")
	w.eventually("provider", ready)
	t.Logf("registered and ready after %.1f s", time.Since(begun).Seconds())
	w.hasAccess(w.installation("provider").Name)
	w.isRequired()

	quiet(t, toGarden, toSeed, fromManager)
	t.Logf("gardenlet wrote %v to the seed and %v to the garden", writes(toSeed), writes(toGarden))
	for _, requests := range []*kit.Requests{toGarden, toSeed, fromManager} {
		requests.Forget()
	}
	quiet(t, toGarden, toSeed, fromManager)
	if rest := slices.Concat(toGarden.All(), toSeed.All(), fromManager.All()); len(rest) > 0 {
		t.Errorf("requests at rest: %v", rest)
	}

	w.stop()
	toGarden, toSeed = w.gardenlet()
	kit.EventuallyTrue(t, "the extension is watched", func() bool {
		return toSeed.Watched("/managedresources") && toGarden.Watched("/controllerinstallations")
	})
	quiet(t, toGarden, toSeed)
	if sent := slices.Concat(writes(toGarden), writes(toSeed)); len(sent) > 0 {
		t.Errorf("a restart wrote %v", sent)
	}

	w.isLeftAlone(deployment)
	w.followsChart(deployment)
	registry := w.pullsChart(deployment)
	w.survivesOutage(deployment, registry)
	w.leavesToOthers()
	w.isRemoved()
}

// hasAccess checks that the workload has the settings of the chart and of gardenlet, and that its token is valid in the
// garden.
func (w *world) hasAccess(name string) {
	w.Helper()
	namespace := "extension-" + name
	workload, secret := &appsv1.Deployment{}, &corev1.Secret{}
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "example"}, workload))
	text, err := yaml.Marshal(workload.Spec.Template.Spec)
	kit.Must(w, err)
	home := &corev1.Namespace{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Name: "garden"}, home))
	for _, part := range []string{"name: GARDEN_UID\n    value: " + string(home.UID), "name: SEED_NAME\n    value: " + seedName, "name: GARDEN\n    value: test-garden", "name: GARDEN_KUBECONFIG", "name: garden-access-extension"} {
		if !strings.Contains(string(text), part) {
			w.Errorf("the Pods lack %q:\n%s", part, text)
		}
	}
	kit.EventuallyTrue(w, "the Secret contains a token for the garden", func() bool {
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "garden-access-extension"}, secret))
		return len(secret.Data["token"]) > 0
	})
	config := rest.AnonymousClientConfig(w.gardens.Config())
	config.BearerToken = string(secret.Data["token"])
	kube, err := kubernetes.NewForConfig(config)
	kit.Must(w, err)
	review, err := kube.AuthenticationV1().SelfSubjectReviews().Create(w.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	kit.Must(w, err)
	if want := "system:serviceaccount:seed-" + seedName + ":extension-" + name; review.Status.UserInfo.Username != want {
		w.Errorf("the extension authenticates in the garden as %s, want %s", review.Status.UserInfo.Username, want)
	}
}

// isRequired checks that the installation is required as long as an extension object exists.
func (w *world) isRequired() {
	w.Helper()
	infrastructure := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--web", Name: "web"}}
	infrastructure.Spec.Type, infrastructure.Spec.Region = "local", "local"
	infrastructure.Spec.SecretRef = corev1.SecretReference{Namespace: "shoot--dev--web", Name: "cloudprovider"}
	kit.Must(w, w.seed.Create(w.Context(), infrastructure))
	w.eventually("provider", required)
	kit.Must(w, w.seed.Delete(w.Context(), infrastructure))
	w.eventually("provider", ready)
}

// isLeftAlone checks that a chart that cannot be rendered does not affect the running extension, and that a condition names
// the error.
func (w *world) isLeftAlone(deployment *gardencorev1.ControllerDeployment) {
	w.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: "garden", Name: w.installation("provider").Name}
	kit.Must(w, w.seed.Get(w.Context(), key, mr))
	before := mr.ResourceVersion
	for _, test := range []struct{ template, want string }{
		{"a: {{ if }}", "example/templates/deployment.yaml:1"},
		{"\na: {{ required \"region is required\" .Values.region }}", "example/templates/deployment.yaml:2"},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {helm.sh/hook: post-install}", "helm.sh/hook: post-install"},
	} {
		kit.Change(w, w.garden, deployment, func() { deployment.Helm.RawChart = w.archive(map[string]string{"deployment.yaml": test.template}) })
		kit.Eventually(w, "the condition names the error", func() string {
			found := w.installation("provider")
			if text := message(found, corev1beta1.ControllerInstallationValid); conditions(found) != invalid || !strings.Contains(text, test.want) {
				return conditions(found) + " " + text
			}
			return ""
		})
		w.Logf("Valid is False: %s", message(w.installation("provider"), corev1beta1.ControllerInstallationValid))
	}
	kit.Must(w, w.seed.Get(w.Context(), key, mr))
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: "extension-" + key.Name, Name: "example"}, &appsv1.Deployment{}))
	if mr.ResourceVersion != before {
		w.Errorf("the ManagedResource was changed: %+v", mr)
	}
}

// followsChart checks that a corrected chart is installed.
func (w *world) followsChart(deployment *gardencorev1.ControllerDeployment) {
	w.Helper()
	kit.Change(w, w.garden, deployment, func() {
		deployment.Helm.RawChart = w.archive(map[string]string{"deployment.yaml": strings.ReplaceAll(chart, ".Values.replicas", "2")})
	})
	w.hasReplicas(2)
	w.eventually("provider", ready)
}

// pullsChart checks that a chart is pulled from a registry that requires a password.
func (w *world) pullsChart(deployment *gardencorev1.ControllerDeployment) *ociRegistry {
	w.Helper()
	server, registry := w.newRegistry(w.archive(map[string]string{"deployment.yaml": strings.ReplaceAll(chart, ".Values.replicas", "add 2 .Values.replicas")}))
	kit.Change(w, w.garden, deployment, func() {
		deployment.Helm.RawChart = nil
		deployment.Helm.OCIRepository = &gardencorev1.OCIRepository{
			Ref: &registry, PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "authority"},
		}
	})
	w.eventually("provider", strings.Replace(invalid, "ChartCannotBeRendered", "OCIChartCannotBePulled", 1))
	pull := &corev1.Secret{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: "garden", Name: "pull"}, pull))
	if text := message(w.installation("provider"), corev1beta1.ControllerInstallationValid); !strings.Contains(text, "garden/pull") || !strings.Contains(text, "has no label") {
		w.Errorf("Valid is False: %s", text)
	}
	kit.Change(w, w.garden, pull, func() { pull.Labels = map[string]string{"gardener.cloud/role": "helm-pull-secret"} })
	w.hasReplicas(3)
	w.eventually("provider", ready)
	return server
}

// hasReplicas waits until the workload has a number of replicas.
func (w *world) hasReplicas(wanted int32) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("the workload has %d replicas", wanted), func() string {
		workload := &appsv1.Deployment{}
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: "extension-" + w.installation("provider").Name, Name: "example"}, workload))
		if found := ptr.Deref(workload.Spec.Replicas, 0); found != wanted {
			return fmt.Sprintf("it has %d replicas", found)
		}
		return ""
	})
}

// survivesOutage checks that the running extension is not affected while the registry does not respond. Changes of the
// declaration are installed with the last known chart. A restarted gardenlet knows no chart: the condition names the registry and
// the error, and changes are installed when the registry responds again.
func (w *world) survivesOutage(deployment *gardencorev1.ControllerDeployment, registry *ociRegistry) {
	w.Helper()
	registry.Close()
	kit.Change(w, w.garden, deployment, func() { deployment.Helm.Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 2}`)} })
	w.hasReplicas(4)
	w.eventually("provider", ready)
	mr := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: "garden", Name: w.installation("provider").Name}
	kit.Must(w, w.seed.Get(w.Context(), key, mr))
	before := mr.Spec.DeepCopy()
	w.stop()
	kit.Change(w, w.garden, deployment, func() { deployment.Helm.Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 3}`)} })
	w.gardenlet()
	w.eventually("provider", strings.Replace(invalid, "ChartCannotBeRendered", "OCIChartCannotBePulled", 1))
	text := message(w.installation("provider"), corev1beta1.ControllerInstallationValid)
	if !strings.Contains(text, " from the registry "+registry.host) || !strings.Contains(text, "connection refused") {
		w.Errorf("Valid is False: %s", text)
	}
	kit.Must(w, w.seed.Get(w.Context(), key, mr))
	if !equality.Semantic.DeepEqual(before, &mr.Spec) {
		w.Errorf("the ManagedResource was changed: %+v", mr)
	}
	registry.start(w)
	w.hasReplicas(5)
	w.eventually("provider", ready)
}

// isRemoved checks that an extension that is not needed anymore is removed with all its objects.
func (w *world) isRemoved() {
	w.Helper()
	w.register("agent", corev1beta1.ControllerDeploymentPolicyAlways)
	w.eventually("agent", ready)
	name := w.installation("agent").Name
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + seedName, Name: "extension-" + name}}
	kit.EventuallyTrue(w, "the agent has a ServiceAccount", func() bool { return w.garden.Get(w.Context(), client.ObjectKeyFromObject(account), account) == nil })
	registration := &corev1beta1.ControllerRegistration{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Name: "agent"}, registration))
	begun := time.Now()
	kit.Change(w, w.garden, registration, func() { registration.Spec.Deployment.Policy = ptr.To(corev1beta1.ControllerDeploymentPolicyOnDemand) })
	kit.Eventually(w, "the agent is removed", func() string {
		return strings.TrimPrefix(conditions(w.installation("agent")), "there is no installation")
	})
	w.Logf("the unneeded extension was removed after %.1f s", time.Since(begun).Seconds())
	for in, object := range map[client.Client]client.Object{
		w.garden: account, w.seed: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension-" + name}},
	} {
		if err := in.Get(w.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			w.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
	var secrets corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &secrets, client.InNamespace("garden")))
	for _, secret := range secrets.Items {
		if strings.Contains(secret.Name, name) {
			w.Errorf("Secret %s still exists", secret.Name)
		}
	}
	w.eventually("provider", ready)
}
