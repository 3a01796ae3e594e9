package registration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/test/kit"
)

// all enables all webhooks.
const all = `webhooks:
  highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: 7}
  projectedTokenMount: {enabled: true, expirationSeconds: 4000}
  podSchedulerName: {enabled: true, schedulerName: of-the-test}
  seccompProfile: {enabled: true}
  kubernetesServiceHost: {enabled: true, host: api.example.org}
  podKubeAPIServerLoadBalancing: {enabled: true}
  systemComponentsConfig: {enabled: true, podNodeSelector: {system: components}}
  podTopologySpreadConstraints: {enabled: true}
  vpaInPlaceUpdates: {enabled: true}
  endpointSliceHints: {enabled: true}
  tokenInvalidator: {enabled: true}
  crdDeletionProtection: {enabled: true}
  manualDeletionProtection: {enabled: true}
  extensionValidation: {enabled: true}
  nodeAgentAuthorizer: {enabled: true}
`

// newFixtureOfAll is newFixture with all webhooks of a seed enabled.
func newFixtureOfAll(t *testing.T) *fixture {
	t.Helper()
	cp := shared.Get(t)
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	f := &fixture{T: t, client: c}
	prepare.Do(f.prepare)
	f.process = kit.StartManager(t, cp.Kubeconfig(), nil, all)
	return f
}

// registerAll registers all webhooks with the API server: for the namespaces of the test, and for cluster-scoped objects that have a label
// of the test.
func (f *fixture) registerAll() {
	f.Helper()
	reach := webhookserver.AtURL(fmt.Sprintf("https://127.0.0.1:%d", f.process.WebhookPort), f.process.Authority.Bundle())
	mutating := webhooks.MutatingConfiguration(webhooks.Table(), webhooks.Placement{}, reach)
	validating := webhooks.ValidatingConfiguration(webhooks.Table(), webhooks.Placement{}, reach)
	mark := map[string]string{labelTest: f.Name()}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].NamespaceSelector.MatchLabels = mark
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].NamespaceSelector.MatchLabels = mark
		validating.Webhooks[i].ObjectSelector.MatchLabels = mark
	}
	mutating.Name, validating.Name = strings.ToLower(f.Name()), strings.ToLower(f.Name())
	for _, configuration := range []client.Object{mutating, validating} {
		kit.Must(f, f.client.Create(f.Context(), configuration))
		f.Cleanup(func() { kit.Must(f, f.client.Delete(context.WithoutCancel(f.Context()), configuration)) })
	}
}

// pod returns a Pod that every webhook for Pods changes.
func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"pod-template-hash": "abc"}},
		Spec: corev1.PodSpec{
			ServiceAccountName: "own", Containers: []corev1.Container{{Name: "main", Image: "example.org/image:1"}},
			Volumes: []corev1.Volume{{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: "generic-token-kubeconfig-1", Optional: ptr.To(true),
			}}}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{},
			}},
		},
	}
}

// namespaceOfAll creates a namespace that all webhooks are called for, with the objects that the Pods need.
func (f *fixture) namespaceOfAll() string {
	f.Helper()
	namespace := f.namespace(nil)
	patch := []byte(`{"metadata":{"labels":{"system-components-config.resources.gardener.cloud/consider":"true"}}}`)
	kit.Must(f, f.client.Patch(f.Context(), namespaceOf(namespace), client.RawPatch("application/merge-patch+json", patch)))
	kit.Must(f, f.client.Create(f.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}, AutomountServiceAccountToken: ptr.To(false),
	}))
	return namespace
}

// TestEveryWebhookOfTheTable checks that the resource-manager serves each row of the table at its path. An API server that is configured
// with the configurations of the table calls each webhook for its purpose.
func TestEveryWebhookOfTheTable(t *testing.T) {
	t.Parallel()
	f := newFixtureOfAll(t)
	f.registerAll()
	for _, placement := range []webhooks.Placement{{Shoot: true}, {NamePrefix: "prefix-"}} {
		for _, configuration := range []client.Object{
			webhooks.MutatingConfiguration(webhooks.Table(), placement, webhookserver.AtService("a", "b", 443, nil)),
			webhooks.ValidatingConfiguration(webhooks.Table(), placement, webhookserver.AtService("a", "b", 443, nil)),
		} {
			if validating, is := configuration.(*admissionregistrationv1.ValidatingWebhookConfiguration); is && validating == nil {
				continue // a shoot has none
			}
			kit.Must(t, f.client.Create(t.Context(), configuration, client.DryRunAll)) // the dry run checks conditions and selectors
		}
	}
	namespace := f.namespaceOfAll()
	var made *corev1.Pod
	kit.Eventually(t, "the API server calls the webhooks for Pods", func() string {
		made = pod(namespace, "app")
		if err := f.client.Create(t.Context(), made, client.DryRunAll); err != nil || made.Spec.SchedulerName != "of-the-test" {
			return "the scheduler is " + made.Spec.SchedulerName + "; " + kit.TextOf(err)
		}
		return ""
	})
	spec := made.Spec
	for what, done := range map[string]bool{
		"a token is mounted":           len(spec.Containers[0].VolumeMounts) == 1 && *spec.Volumes[1].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds == 4000,
		"there is a seccomp profile":   spec.SecurityContext.SeccompProfile != nil && spec.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"the API server's host is set": len(spec.Containers[0].Env) == 1 && spec.Containers[0].Env[0].Value == "api.example.org",
		"there is a node selector":     spec.NodeSelector["system"] == "components",
		"the constraint has the hash":  spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["pod-template-hash"] == "abc",
	} {
		if !done {
			t.Errorf("condition not met: %s: %+v", what, spec)
		}
	}
	f.wantOwnPodsLeftAlone(namespace)
	f.wantOthersChanged(namespace)
	f.wantDefinitionProtected("things-of-" + namespace)
}

// wantOwnPodsLeftAlone checks that webhooks that fail closed are not called for Pods of the resource-manager, nor for static Pods.
func (f *fixture) wantOwnPodsLeftAlone(namespace string) {
	f.Helper()
	for key, value := range map[string]string{"app": "gardener-resource-manager", "static-pod": "true"} {
		untouched := pod(namespace, "untouched")
		untouched.Labels[key] = value
		kit.Must(f, f.client.Create(f.Context(), untouched, client.DryRunAll))
		if spec := untouched.Spec; len(spec.Volumes) != 1 || spec.SecurityContext.SeccompProfile != nil || spec.NodeSelector != nil || (key == "static-pod") != (len(spec.Containers[0].Env) == 0) {
			f.Errorf("a Pod with %s=%s was changed: %+v", key, value, spec)
		}
	}
}

func (f *fixture) wantOthersChanged(namespace string) {
	f.Helper()
	workload := deployment(namespace, "app", 1)
	kit.Must(f, f.client.Create(f.Context(), workload, client.DryRunAll))
	if tolerations := workload.Spec.Template.Spec.Tolerations; len(tolerations) != 1 || *tolerations[0].TolerationSeconds != 7 {
		f.Errorf("the tolerations are %+v", tolerations)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "app", Labels: map[string]string{"endpoint-slice-hints.resources.gardener.cloud/consider": "true"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Zone: ptr.To("a")}},
	}
	kit.Must(f, f.client.Create(f.Context(), slice, client.DryRunAll))
	if slice.Endpoints[0].Hints == nil {
		f.Error("the endpoint has no hint")
	}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token", Labels: map[string]string{
			resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenInvalidator, resourcesv1alpha1.LabelTokenInvalidatorConsider: "true",
		}},
		Data: map[string][]byte{"token": []byte("valid")},
	}
	kit.Must(f, f.client.Create(f.Context(), token, client.DryRunAll))
	if string(token.Data["token"]) != "\x00\x00\x00" {
		f.Errorf("the token is %q", token.Data["token"])
	}
}

func (f *fixture) wantDefinitionProtected(plural string) {
	f.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".protected.example.org", Labels: map[string]string{labelTest: f.Name(), "gardener.cloud/deletion-protected": "true"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "protected.example.org", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
			}}},
		},
	}
	kit.Must(f, f.client.Create(f.Context(), definition))
	if err := f.client.Delete(f.Context(), definition, client.DryRunAll); !strings.Contains(kit.TextOf(err), `"confirmation.gardener.cloud/deletion" annotation to delete`) {
		f.Errorf("the definition can be deleted: %v", err)
	}
}
