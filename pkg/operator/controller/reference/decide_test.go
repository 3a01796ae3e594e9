package reference

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestOf checks the references of each field.
func TestOf(t *testing.T) {
	const server = "spec: {virtualCluster: {kubernetes: {kubeAPIServer: "
	const gapi = "spec: {virtualCluster: {gardener: {gardenerAPIServer: "
	for text, want := range map[string]Reference{
		"spec: {dns: {providers: [{secretRef: {name: a}}]}}":                       {Secret, "a"},
		"spec: {virtualCluster: {etcd: {main: {backup: {secretRef: {name: a}}}}}}": {Secret, "a"},
		"spec: {resources: [{resourceRef: {kind: Secret, name: a}}]}":              {Secret, "a"},
		"spec: {resources: [{resourceRef: {kind: ConfigMap, name: a}}]}":           {ConfigMap, "a"},
		server + "{admissionPlugins: [{name: x, kubeconfigSecretName: a}]}}}}":     {Secret, "a"},
		server + "{auditConfig: {auditPolicy: {configMapRef: {name: a}}}}}}}":      {ConfigMap, "a"},
		server + "{auditWebhook: {kubeconfigSecretName: a}}}}}":                    {Secret, "a"},
		server + "{authentication: {webhook: {kubeconfigSecretName: a}}}}}}":       {Secret, "a"},
		server + "{structuredAuthentication: {configMapName: a}}}}}":               {ConfigMap, "a"},
		server + "{structuredAuthorization: {configMapName: a}}}}}":                {ConfigMap, "a"},
		server + "{structuredAuthorization: {kubeconfigs: [{secretName: a}]}}}}}":  {Secret, "a"},
		server + "{sni: {secretName: a}}}}}":                                       {Secret, "a"},
		gapi + "{admissionPlugins: [{name: x, kubeconfigSecretName: a}]}}}}":       {Secret, "a"},
		gapi + "{auditConfig: {auditPolicy: {configMapRef: {name: a}}}}}}}":        {ConfigMap, "a"},
		gapi + "{auditWebhook: {kubeconfigSecretName: a}}}}}":                      {Secret, "a"},
	} {
		if got := Of(decode[operatorv1alpha1.Garden](t, text)); !slices.Equal(got, []Reference{want}) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	const extension = "spec: {deployment: {extension: {helm: {ociRepository: {pullSecretRef: {name: a}, caBundleSecretRef: {name: b}}}}, " +
		"admission: {runtimeCluster: {helm: {ociRepository: {pullSecretRef: {name: c}}}}, virtualCluster: {helm: {ociRepository: {pullSecretRef: {name: a}}}}}, " +
		"resources: [{resourceRef: {kind: ConfigMap, name: d}}]}}"
	want := []Reference{{ConfigMap, "d"}, {Secret, "a"}, {Secret, "b"}, {Secret, "c"}}
	if got := Of(decode[operatorv1alpha1.Extension](t, extension)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOfExample checks the example, which has all fields, so that a new field with a reference is not forgotten.
func TestOfExample(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "fleet", "operator", "garden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Reference{
		{ConfigMap, "audit-policy"}, {ConfigMap, "authentication"}, {ConfigMap, "filter"},
		{Secret, "audit"}, {Secret, "authentication"}, {Secret, "backup"}, {Secret, "dns"}, {Secret, "sni"},
	}
	if got := Of(decode[operatorv1alpha1.Garden](t, string(content))); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestUses checks that a Garden that is being deleted uses objects until the operator has released it.
func TestUses(t *testing.T) {
	for name, test := range map[string]struct {
		object client.Object
		want   bool
	}{
		"lives":      {&operatorv1alpha1.Garden{}, true},
		"is deleted": {&operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now()), Finalizers: []string{"gardener.cloud/operator"}}}, true},
		"is over":    {&operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}}, false},
	} {
		if got := Uses(test.object); got != test.want {
			t.Errorf("a Garden that %s uses objects: %t", name, got)
		}
	}
}
