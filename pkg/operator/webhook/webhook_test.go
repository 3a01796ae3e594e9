package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

func handle(t *testing.T, name string, request admissionv1.AdmissionRequest, stored ...client.Object) admission.Response {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	table := Table(fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build())
	at := slices.IndexFunc(table, func(row webhookserver.Webhook) bool { return row.Name == name })
	served, ok := table[at].Handler.(*admission.Webhook)
	if !ok {
		t.Fatalf("the handler of %s is a %T", name, table[at].Handler)
	}
	return served.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: request})
}

func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: content}
}

func check(t *testing.T, response admission.Response, want string) {
	t.Helper()
	if response.Allowed != (want == "") {
		t.Fatalf("the response is %+v", response.Result)
	}
	if want != "" && !strings.Contains(response.Result.Message, want) {
		t.Errorf("refused with %s, want %s", response.Result.Message, want)
	}
}

// TestNeededExtensions checks that an Extension that something needs is not deleted.
func TestNeededExtensions(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []corev1beta1.Condition
		want       string
	}{
		"unknown":          {nil, ""},
		"not needed":       {[]corev1beta1.Condition{{Type: "RequiredRuntime", Status: "False"}, {Type: "RequiredVirtual", Status: "False"}}, ""},
		"needed in Seeds":  {[]corev1beta1.Condition{{Type: "RequiredVirtual", Status: "True"}}, "Seeds need it"},
		"needed by garden": {[]corev1beta1.Condition{{Type: "RequiredRuntime", Status: "True"}}, "the runtime cluster needs it"},
	} {
		t.Run(name, func(t *testing.T) {
			extension := &v1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Status: v1alpha1.ExtensionStatus{Conditions: test.conditions}}
			check(t, handle(t, "validate-extension", admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: raw(t, extension)}), test.want)
		})
	}
}

// TestExtensions checks that invalid Extensions are refused, and that an error of a stored one does not prevent other changes.
func TestExtensions(t *testing.T) {
	invalid := &v1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	create := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(t, invalid)}
	check(t, handle(t, "validate-extension", create), "spec.deployment")
	update := admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: raw(t, invalid), OldObject: raw(t, invalid)}
	check(t, handle(t, "validate-extension", update), "")
}

// TestDefaultsOfExtensions checks that extensions with machines get access to the garden unless that is switched off.
func TestDefaultsOfExtensions(t *testing.T) {
	for content, want := range map[string]string{
		`{"spec":{"resources":[{"kind":"Worker","type":"a","primary":true}],"deployment":{"extension":{}}}}`:                               "/spec/deployment/extension/injectGardenKubeconfig",
		`{"spec":{"resources":[{"kind":"Worker","type":"a","primary":true}],"deployment":{"extension":{"injectGardenKubeconfig":false}}}}`: "",
		`{"spec":{"resources":[{"kind":"Network","type":"a"}],"deployment":{"extension":{}}}}`:                                             "/spec/resources/0/primary",
	} {
		request := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(content)}}
		response := handle(t, "default-extension", request)
		var paths []string
		for _, patch := range response.Patches {
			paths = append(paths, patch.Path)
		}
		if got := strings.Join(paths, ", "); got != want {
			t.Errorf("%s: patched are %q, want %q", content, got, want)
		}
	}
}

// TestNamespaceOfGarden checks that the namespace stays as long as the Garden.
func TestNamespaceOfGarden(t *testing.T) {
	request := admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Name: "garden"}
	check(t, handle(t, "validate-namespace-deletion", request), "")
	garden := &v1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	check(t, handle(t, "validate-namespace-deletion", request, garden), "delete the Garden first")
	request.Name = "other"
	check(t, handle(t, "validate-namespace-deletion", request, garden), "")
}

// TestAuditPolicies checks the policies that a Garden refers to, from both sides.
func TestAuditPolicies(t *testing.T) {
	garden := func(policy string) *v1alpha1.Garden {
		one := &v1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
		one.Spec.VirtualCluster.Gardener.GardenerAPIServer = &v1alpha1.GardenerAPIServerConfig{AuditConfig: &corev1beta1.AuditConfig{
			AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: policy}},
		}}
		return one
	}
	configMap := func(content string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "audit"}, Data: map[string]string{"policy": content}}
	}
	const valid, invalid = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"None"}]}`, `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Loud"}]}`
	kind := metav1.GroupVersionKind{Kind: "Garden"}
	create := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Kind: kind, Object: raw(t, garden("audit"))}
	check(t, handle(t, "audit-policies", create, configMap(valid)), "")
	check(t, handle(t, "audit-policies", create, configMap(invalid)), "gardenerAPIServer.auditConfig.auditPolicy.configMapRef")
	check(t, handle(t, "audit-policies", create, configMap("")), "no data with the key policy")
	check(t, handle(t, "audit-policies", create), "does not exist in namespace garden")
	update := admissionv1.AdmissionRequest{Operation: admissionv1.Update, Kind: kind, Object: raw(t, garden("audit")), OldObject: raw(t, garden("audit"))}
	check(t, handle(t, "audit-policies", update), "")
	change := admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: "garden", Name: "audit", Kind: metav1.GroupVersionKind{Kind: "ConfigMap"},
		Object: raw(t, configMap(invalid)), OldObject: raw(t, configMap(valid)),
	}
	check(t, handle(t, "audit-policies", change, garden("audit")), "ConfigMap audit")
	check(t, handle(t, "audit-policies", change, garden("other")), "")
}
