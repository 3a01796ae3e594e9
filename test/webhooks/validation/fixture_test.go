// Package validation tests the validating webhooks on a real API server, registered in the same way as those of gardener-resource-manager.
package validation

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/webhooks/deletionprotection"
	"github.com/trellis-k8s/trellis/pkg/webhooks/extensionvalidation"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// testLabel keeps the webhooks of one test away from the objects of another one. Its value is the test's namespace.
const testLabel = "test.example.com/namespace"

var (
	shared      controlplane.Shared
	installOnce sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// fixture is a namespace with all validating webhooks.
type fixture struct {
	*testing.T
	client    client.WithWatch
	namespace string
	// requests are the requests of the webhooks.
	requests *kit.Requests
}

// newFixture returns a namespace whose webhooks are in effect.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := newUnguarded(t)
	f.guard()
	return f
}

// newUnguarded returns a namespace whose webhooks are not in effect until guard is called. more are additional rules for the webhook of
// deletions of custom resources.
func newUnguarded(t *testing.T, more ...admissionregistrationv1.RuleWithOperations) *fixture {
	t.Helper()
	t.Parallel()
	config := shared.Get(t).Config()
	config.QPS = -1
	installOnce.Do(func() { installDefinitions(t, config) })
	f := &fixture{T: t, client: newClient(t, config), requests: &kit.Requests{}}
	f.namespace = kit.NewNamespace(t, f.client, "validation", nil)
	f.register(config, more)
	return f
}

func newClient(tb testing.TB, config *rest.Config) client.WithWatch {
	tb.Helper()
	scheme := runtime.NewScheme()
	kit.Must(tb, clientgoscheme.AddToScheme(scheme))
	kit.Must(tb, apiextensionsv1.AddToScheme(scheme))
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	kit.Must(tb, err)
	return c
}

// installDefinitions defines all kinds, with schemas that allow anything.
func installDefinitions(t *testing.T, config *rest.Config) {
	t.Helper()
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range extensionvalidation.Kinds() {
		scope := apiextensionsv1.ClusterScoped
		if kind.Namespaced {
			scope = apiextensionsv1.NamespaceScoped
		}
		definitions = append(definitions, definition(kind.Group, kind.Version, kind.Kind, kind.Plural, scope))
	}
	kit.Define(t, config, definitions...)
}

func definition(group, version, kind, plural string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

// register serves the webhooks and registers them with the API server, with the rules of gardener-resource-manager.
func (f *fixture) register(config *rest.Config, more []admissionregistrationv1.RuleWithOperations) {
	f.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(f.requests.Wrap)
	handlers := map[string]http.Handler{
		deletionprotection.Path: &admission.Webhook{Handler: deletionprotection.NewHandler(newClient(f, config))},
	}
	for _, kind := range extensionvalidation.Kinds() {
		handlers[kind.Path()] = &admission.Webhook{Handler: kind.NewHandler()}
	}
	server := kit.ServeWebhooks(f, handlers)
	registration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	extensions := []string{"bastions"}
	for _, kind := range extensionvalidation.Kinds() {
		registration.Webhooks = append(registration.Webhooks, f.webhook(server, "validation.extensions."+kind.Plural, kind.Path(), nil,
			rule(kind.Group, kind.Version, []string{kind.Plural}, admissionregistrationv1.Create, admissionregistrationv1.Update)))
		if kind.Group == "extensions.gardener.cloud" && kind.Plural != "bastions" {
			extensions = append(extensions, kind.Plural)
		}
	}
	definitions := rule("apiextensions.k8s.io", "v1beta1", []string{"customresourcedefinitions"}, admissionregistrationv1.Delete)
	definitions.APIVersions = append(definitions.APIVersions, "v1")
	registration.Webhooks = append(registration.Webhooks,
		f.webhook(server, "crd-deletion-protection", deletionprotection.Path,
			map[string]string{deletionprotection.LabelDeletionProtected: "true"}, definitions),
		f.webhook(server, "cr-deletion-protection", deletionprotection.Path, nil, append(more,
			rule("druid.gardener.cloud", "v1alpha1", []string{"etcds"}, admissionregistrationv1.Delete),
			rule("extensions.gardener.cloud", "v1alpha1", extensions, admissionregistrationv1.Delete))...))
	kit.Must(f, f.client.Create(f.Context(), registration))
	f.Cleanup(func() { kit.Must(f, f.client.Delete(context.Background(), registration)) })
}

func rule(group, version string, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources,
	}}
}

// webhook restricts namespaced objects by the label of the namespace, and other objects by their own label.
func (f *fixture) webhook(server *kit.Webhooks, name, path string, objects map[string]string,
	rules ...admissionregistrationv1.RuleWithOperations,
) admissionregistrationv1.ValidatingWebhook {
	objects = maps.Clone(objects)
	if objects == nil {
		objects = map[string]string{}
	}
	objects[testLabel] = f.namespace
	return admissionregistrationv1.ValidatingWebhook{
		Name: name + ".resources.gardener.cloud", ClientConfig: server.ClientConfig(path), Rules: rules,
		AdmissionReviewVersions: []string{"v1beta1", "v1"}, TimeoutSeconds: ptr.To[int32](10),
		SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
		MatchPolicy:       ptr.To(admissionregistrationv1.Exact),
		FailurePolicy:     ptr.To(admissionregistrationv1.Fail),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{testLabel: f.namespace}},
		ObjectSelector:    &metav1.LabelSelector{MatchLabels: objects},
	}
}

// guard registers the webhooks and waits until they are in effect.
func (f *fixture) guard() {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	kit.Must(f, f.client.Patch(f.Context(), namespace, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"`+testLabel+`":"`+f.namespace+`"}}}`))))
	kit.Eventually(f, "the webhooks are called", func() string {
		err := f.client.Create(f.Context(), f.object("Extension", "probe", "{}"), client.DryRunAll)
		if apierrors.IsInvalid(err) {
			return ""
		}
		return "the answer to an invalid object is " + kit.TextOf(err)
	})
}

func kindOf(tb testing.TB, name string) extensionvalidation.Kind {
	tb.Helper()
	kinds := extensionvalidation.Kinds()
	i := slices.IndexFunc(kinds, func(kind extensionvalidation.Kind) bool { return kind.Kind == name })
	if i < 0 {
		tb.Fatalf("kind %s does not exist", name)
	}
	return kinds[i]
}

// object returns an object with a spec in YAML and the label of the test.
func (f *fixture) object(kindName, name, spec string) *unstructured.Unstructured {
	f.Helper()
	kind := kindOf(f, kindName)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": fromYAML(f, spec)}}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetLabels(map[string]string{testLabel: f.namespace})
	object.SetName(name)
	if kind.Namespaced {
		object.SetNamespace(f.namespace)
	} else {
		object.SetName(f.namespace + "-" + name)
	}
	return object
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	kit.Must(f, f.client.Create(f.Context(), object))
}

func fromYAML(tb testing.TB, text string) any {
	tb.Helper()
	var value any
	kit.Must(tb, yaml.Unmarshal([]byte(text), &value))
	return value
}

// patched returns a spec in YAML with a merge patch in YAML applied. A patch that is not a mapping replaces the spec.
func patched(tb testing.TB, spec, patch string) string {
	tb.Helper()
	merged, err := json.Marshal(merge(fromYAML(tb, spec), fromYAML(tb, patch)))
	kit.Must(tb, err)
	return string(merged)
}

func merge(value, patch any) any {
	changes, isMapping := patch.(map[string]any)
	if !isMapping {
		return patch
	}
	result := map[string]any{}
	if mapping, ok := value.(map[string]any); ok {
		result = maps.Clone(mapping)
	}
	for key, change := range changes {
		if change == nil {
			delete(result, key)
		} else {
			result[key] = merge(result[key], change)
		}
	}
	return result
}

// causes returns the causes of an error that an object is invalid: each field and its message. Any other error ends the test.
func (f *fixture) causes(err error) []string {
	f.Helper()
	if err == nil {
		return nil
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Reason != metav1.StatusReasonInvalid ||
		!strings.Contains(err.Error(), "denied the request") {
		f.Fatalf("the error does not refuse an invalid object: %v", err)
	}
	var causes []string
	for _, cause := range status.Status().Details.Causes {
		causes = append(causes, cause.Field+": "+cause.Message)
	}
	return causes
}

// wantRefused checks the code and the message of a refusal.
func (f *fixture) wantRefused(err error, code int32, message string) {
	f.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != code || !strings.HasSuffix(err.Error(), message) {
		f.Errorf("the answer is %v, not %d: %s", err, code, message)
	}
}
