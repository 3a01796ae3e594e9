package garden

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

func example[T any](t *testing.T, name string) *T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "fleet", "operator", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := new(T)
	if err := yaml.Unmarshal(content, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: content}
}

func newClient(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// TestValidating checks which requests are refused, with what message.
func TestValidating(t *testing.T) {
	offers := example[v1alpha1.Extension](t, "extension")
	one := func(change func(*v1alpha1.Garden)) *v1alpha1.Garden {
		garden := example[v1alpha1.Garden](t, "garden")
		v1alpha1.SetDefaultsGarden(garden)
		change(garden)
		return garden
	}
	same := func(*v1alpha1.Garden) {}
	broken := func(garden *v1alpha1.Garden) { garden.Spec.RuntimeCluster.Networking.Pods = []string{"10.0.0.0/16"} }
	for name, test := range map[string]struct {
		operation admissionv1.Operation
		old, now  *v1alpha1.Garden
		stored    []client.Object
		want      string
		code      int32
	}{
		"first":                {admissionv1.Create, nil, one(same), []client.Object{offers}, "", 0},
		"second":               {admissionv1.Create, nil, one(same), []client.Object{offers, one(func(g *v1alpha1.Garden) { g.Name = "other" })}, "only one Garden, and other exists", http.StatusForbidden},
		"invalid":              {admissionv1.Create, nil, one(broken), []client.Object{offers}, "spec.runtimeCluster.networking.pods[0]", http.StatusUnprocessableEntity},
		"no such extension":    {admissionv1.Create, nil, one(same), nil, "spec.extensions[0].type", http.StatusUnprocessableEntity},
		"extension leaves":     {admissionv1.Update, one(same), one(func(g *v1alpha1.Garden) { g.Labels = map[string]string{"a": "b"} }), nil, "", 0},
		"label of invalid one": {admissionv1.Update, one(broken), one(func(g *v1alpha1.Garden) { broken(g); g.Labels = map[string]string{"a": "b"} }), nil, "", 0},
		"becomes invalid":      {admissionv1.Update, one(same), one(broken), nil, "spec.runtimeCluster.networking.pods[0]", http.StatusUnprocessableEntity},
		"range removed":        {admissionv1.Update, one(same), one(func(g *v1alpha1.Garden) { g.Spec.RuntimeCluster.Networking.Nodes = nil }), nil, "ranges can be added only", http.StatusUnprocessableEntity},
		"not confirmed":        {admissionv1.Delete, one(same), nil, nil, `"confirmation.gardener.cloud/deletion"`, http.StatusForbidden},
		"confirmed": {admissionv1.Delete, one(func(g *v1alpha1.Garden) {
			g.Annotations = map[string]string{"confirmation.gardener.cloud/deletion": "true"}
		}), nil, nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: test.operation, Name: "local"}}
			request.Kind.Kind = "Garden"
			if test.now != nil {
				request.Object = raw(t, test.now)
			}
			if test.old != nil {
				request.OldObject = raw(t, test.old)
			}
			response := NewValidating(newClient(t, test.stored...)).Handle(t.Context(), request)
			if response.Allowed != (test.want == "") {
				t.Fatalf("the response is %+v", response.Result)
			}
			if !response.Allowed && (!strings.Contains(response.Result.Message, test.want) || response.Result.Code != test.code) {
				t.Errorf("refused with %d, %s", response.Result.Code, response.Result.Message)
			}
		})
	}
}

// TestUnknownIsNotAbsent checks that a Garden is not admitted if it is unknown whether there is another.
func TestUnknownIsNotAbsent(t *testing.T) {
	failing := interceptor.NewClient(newClient(t), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no answer")
		},
	})
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(t, example[v1alpha1.Garden](t, "garden"))}}
	if response := NewValidating(failing).Handle(t.Context(), request); response.Allowed {
		t.Error("a Garden was admitted although the others could not be listed")
	}
}

// TestDefaulting checks that defaults are set on what a client sends, and only once.
func TestDefaulting(t *testing.T) {
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create,
		Object: runtime.RawExtension{Raw: []byte(`{"spec":{"virtualCluster":{"kubernetes":{"kubeAPIServer":{"encryptionConfig":{"provider":{"type":"secretbox"}}}}}}}`)}}}
	response := NewDefaulting().Handle(t.Context(), request)
	text, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gardenerAPIServer", "secretbox", "kubeControllerManager"} {
		if !response.Allowed || !strings.Contains(string(text), want) {
			t.Errorf("the patch has no %s: %s", want, text)
		}
	}
	garden := example[v1alpha1.Garden](t, "garden")
	v1alpha1.SetDefaultsGarden(garden)
	request.Object = raw(t, garden)
	if response := NewDefaulting().Handle(t.Context(), request); len(response.Patches) > 0 {
		t.Errorf("a Garden with defaults is patched: %v", response.Patches)
	}
}
