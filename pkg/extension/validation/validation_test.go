package validation

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// config is a configuration of users in two versions.
type (
	config struct {
		metav1.TypeMeta
		Zone string
	}
	configV1 struct {
		metav1.TypeMeta `json:",inline"`
		Zone            string `json:"zone"`
	}
	configV2 struct {
		metav1.TypeMeta `json:",inline"`
		Location        string `json:"location"`
	}
)

func (c *config) DeepCopyObject() runtime.Object   { copied := *c; return &copied }
func (c *configV1) DeepCopyObject() runtime.Object { copied := *c; return &copied }
func (c *configV2) DeepCopyObject() runtime.Object { copied := *c; return &copied }

// toInternal returns a conversion to the internal type.
func toInternal[T any](zone func(T) string) conversion.ConversionFunc {
	return func(a, b any, _ conversion.Scope) error {
		from, is := a.(T)
		to, known := b.(*config)
		if !is || !known {
			return errors.New("unexpected types")
		}
		to.Zone = zone(from)
		return nil
	}
}

const group = "cloud.example.org"

func newDecoder(t *testing.T) *Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	internal := schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypeWithName(internal.WithKind("Config"), &config{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Config"}, &configV1{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v2", Kind: "Config"}, &configV2{})
	err := errors.Join(
		scheme.AddConversionFunc((*configV1)(nil), (*config)(nil), toInternal(func(from *configV1) string { return from.Zone })),
		scheme.AddConversionFunc((*configV2)(nil), (*config)(nil), toInternal(func(from *configV2) string { return from.Location })),
	)
	if err != nil {
		t.Fatal(err)
	}
	return NewDecoder(scheme, internal)
}

// TestConfigurationsAreDecodedToTheInternalType checks that for every version that users may write.
func TestConfigurationsAreDecodedToTheInternalType(t *testing.T) {
	decoder := newDecoder(t)
	for _, text := range []string{`{"apiVersion":"cloud.example.org/v1","kind":"Config","zone":"a"}`, `{"apiVersion":"cloud.example.org/v2","kind":"Config","location":"a"}`} {
		var into config
		if all := decoder.Decode(&runtime.RawExtension{Raw: []byte(text)}, &into, field.NewPath("spec")); len(all) > 0 || into.Zone != "a" {
			t.Errorf("%s: %v, %+v", text, all, into)
		}
	}
}

// TestConfigurationsAreDecodedStrictly checks that unknown, duplicate, missing and too large fields are errors.
func TestConfigurationsAreDecodedStrictly(t *testing.T) {
	decoder := newDecoder(t)
	for want, raw := range map[string]*runtime.RawExtension{
		`unknown field "zoen"`:         {Raw: []byte(`{"apiVersion":"cloud.example.org/v1","kind":"Config","zoen":"a"}`)},
		`duplicate field "zone"`:       {Raw: []byte(`{"apiVersion":"cloud.example.org/v1","kind":"Config","zone":"a","zone":"b"}`)},
		`no kind "Other"`:              {Raw: []byte(`{"apiVersion":"cloud.example.org/v1","kind":"Other"}`)},
		"the configuration is missing": nil,
		"Too long":                     {Raw: bytes.Repeat([]byte("a"), maxConfig+1)},
	} {
		all := decoder.Decode(raw, &config{}, field.NewPath("spec", "providerConfig"))
		if len(all) != 1 || !strings.Contains(all[0].Error(), want) || !strings.HasPrefix(all[0].Error(), "spec.providerConfig: ") {
			t.Errorf("%v, want %s", all, want)
		}
	}
}

func shootWith(kind, version string) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "blue"}}
	shoot.Spec.Provider.Type = "cloud"
	shoot.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "mine", ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, APIVersion: version, Name: "credentials"}}}
	return shoot
}

// TestReferencesAreOfKindsThatAreAllowed checks that only Secrets, ConfigMaps and WorkloadIdentities can be referenced.
func TestReferencesAreOfKindsThatAreAllowed(t *testing.T) {
	path := field.NewPath("spec")
	for _, test := range []struct {
		kind, version string
		kinds         []string
		right         bool
	}{
		{KindSecret, "v1", nil, true}, {KindConfigMap, "v1", nil, true}, {KindWorkloadIdentity, "security.gardener.cloud/v1alpha1", nil, true},
		{"Pod", "v1", nil, false}, {KindSecret, "v2", nil, false}, {KindConfigMap, "v1", []string{KindSecret}, false},
	} {
		ref, all := Reference(shootWith(test.kind, test.version), "mine", path, test.kinds...)
		if (len(all) == 0) != test.right || test.right != (ref != nil && ref.Name == "credentials") {
			t.Errorf("%+v: %v, %v", test, ref, all)
		}
	}
	if _, all := Reference(shootWith(KindSecret, "v1"), "other", path); len(all) != 1 || all[0].Type != field.ErrorTypeNotFound {
		t.Errorf("for a name that the Shoot does not have: %v", all)
	}
}

// TestDataOfReferencesAreChecked checks that keys exist and have the right format, and that errors do not repeat values.
func TestDataOfReferencesAreChecked(t *testing.T) {
	keys := []Key{{Name: "user"}, {Name: "password", Check: func(value []byte) error {
		if len(value) < 8 {
			return errors.New("must have 8 characters")
		}
		return nil
	}}}
	secret := &corev1.Secret{Data: map[string][]byte{"user": []byte("me"), "password": []byte("s3cret")}}
	all := SecretKeys(secret, field.NewPath("data"), keys...)
	if len(all) != 1 || all[0].Error() != "data[password]: Invalid value: must have 8 characters" {
		t.Errorf("%v", all)
	}
	if all := ConfigMapKeys(&corev1.ConfigMap{Data: map[string]string{"password": "12345678"}}, field.NewPath("data"), keys...); len(all) != 1 || all[0].Type != field.ErrorTypeRequired {
		t.Errorf("%v", all)
	}
}

// TestReferencesAreImmutable checks that referenced objects must be immutable where changes would not be noticed.
func TestReferencesAreImmutable(t *testing.T) {
	if all := Immutable(&corev1.Secret{Immutable: ptr.To(true)}, field.NewPath("spec")); len(all) > 0 {
		t.Error(all)
	}
	if all := Immutable(&corev1.ConfigMap{}, field.NewPath("spec")); len(all) != 1 {
		t.Errorf("for a mutable ConfigMap: %v", all)
	}
}

// TestChangesOfReferencesInUseAreSeen checks that the Shoots that refer to an object and use the extension are found.
func TestChangesOfReferencesInUseAreSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	unrelated := shootWith(KindSecret, "v1")
	unrelated.Name, unrelated.Spec.Provider.Type = "green", "other"
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shootWith(KindSecret, "v1"), unrelated).Build()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "credentials"}}
	for want, uses := range map[string]func(*corev1beta1.Shoot) bool{"blue": UsesProvider("cloud"), "": UsesExtension("cloud")} {
		names, err := UsedBy(t.Context(), reader, KindSecret, secret, uses)
		if err != nil || strings.Join(names, ",") != want {
			t.Errorf("%v, %v, want %q", names, err, want)
		}
	}
}

// TestWebhooksSelectWhatUsesTheExtension checks that webhooks select objects by the label that gardener sets.
func TestWebhooksSelectWhatUsesTheExtension(t *testing.T) {
	for kind, label := range map[string]string{"Infrastructure": "provider.extensions.gardener.cloud/a", "Extension": "extensions.extensions.gardener.cloud/a"} {
		selector, err := ObjectSelector(kind, "a")
		if err != nil || selector.MatchLabels[label] != "true" {
			t.Errorf("%s: %v, %v", kind, selector, err)
		}
	}
	if _, err := ObjectSelector("Cluster", "a"); err == nil {
		t.Error("got a selector for a kind that no extension handles")
	}
}

// TestWebhooksAreCalledForChangesOfWhatUsesTheExtension checks the match conditions. TestAdmission in test/apiserver evaluates
// the expressions.
func TestWebhooksAreCalledForChangesOfWhatUsesTheExtension(t *testing.T) {
	conditions := MatchConditions("spec.provider.type", "a")
	if len(conditions) != 3 || conditions[0].Expression != `object.?spec.?provider.?type.orValue("") == "a"` {
		t.Errorf("%+v", conditions)
	}
}

// TestHandler checks that an invalid object is refused with its fields, and that an unchanged or deleted object is allowed.
func TestHandler(t *testing.T) {
	handler := Handler(func() *corev1beta1.Shoot { return &corev1beta1.Shoot{} }, func(_ context.Context, wanted, live *corev1beta1.Shoot) field.ErrorList {
		if live != nil && live.Spec.Region == wanted.Spec.Region {
			return nil
		}
		return field.ErrorList{field.Invalid(field.NewPath("spec", "region"), wanted.Spec.Region, "does not exist")}
	})
	for name, test := range map[string]struct {
		operation, object, old string
		allowed                bool
	}{
		"created":       {"CREATE", `{"spec":{"region":"mars"}}`, "", false},
		"deleting":      {"UPDATE", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"region":"mars"}}`, "", true},
		"not changed":   {"UPDATE", `{"metadata":{"generation":2},"spec":{"region":"mars"}}`, `{"metadata":{"generation":2}}`, true},
		"changed":       {"UPDATE", `{"metadata":{"generation":2},"spec":{"region":"mars"}}`, `{"metadata":{"generation":1}}`, false},
		"same region":   {"UPDATE", `{"metadata":{"generation":2},"spec":{"region":"mars"}}`, `{"metadata":{"generation":1},"spec":{"region":"mars"}}`, true},
		"to be deleted": {"DELETE", `{"spec":{"region":"mars"}}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			request := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"` + test.operation +
				`","kind":{"group":"core.gardener.cloud","version":"v1beta1","kind":"Shoot"},"object":` + test.object
			if test.old != "" {
				request += `,"oldObject":` + test.old
			}
			asked := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(request+"}}"))
			asked.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, asked)
			text := answer.Body.String()
			if strings.Contains(text, `"allowed":true`) != test.allowed || !test.allowed && !strings.Contains(text, "spec.region: Invalid value") {
				t.Errorf("the answer is %s", text)
			}
		})
	}
}
