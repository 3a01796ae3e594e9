package tokeninvalidator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const considerLabel = "token-invalidator.resources.gardener.cloud/consider"

func TestInvalidate(t *testing.T) {
	labelled, other := map[string]string{considerLabel: "true"}, map[string]string{"resources.gardener.cloud/purpose": "token-invalidator"}
	for name, test := range map[string]struct {
		labels     map[string]string
		data, want map[string][]byte // want is nil if nothing changes
	}{
		"valid":                  {labelled, map[string][]byte{"token": []byte("x"), "a": []byte("b")}, map[string][]byte{"token": {0, 0, 0}, "a": []byte("b")}},
		"another value":          {map[string]string{considerLabel: "false"}, map[string][]byte{"token": []byte("x")}, map[string][]byte{"token": {0, 0, 0}}},
		"empty token":            {labelled, map[string][]byte{"token": {}}, map[string][]byte{"token": {0, 0, 0}}},
		"nil token":              {labelled, map[string][]byte{"token": nil}, map[string][]byte{"token": {0, 0, 0}}},
		"no token":               {labelled, map[string][]byte{"a": []byte("b")}, map[string][]byte{"token": {0, 0, 0}, "a": []byte("b")}},
		"empty data":             {labelled, map[string][]byte{}, map[string][]byte{"token": {0, 0, 0}}},
		"longer":                 {labelled, map[string][]byte{"token": {0, 0, 0, 0}}, map[string][]byte{"token": {0, 0, 0}}},
		"invalid":                {labelled, map[string][]byte{"token": {0, 0, 0}}, nil},
		"no data":                {labelled, nil, nil},
		"restored":               {other, map[string][]byte{"token": {0, 0, 0}, "a": []byte("b")}, map[string][]byte{"a": []byte("b")}},
		"restored, without more": {nil, map[string][]byte{"token": {0, 0, 0}}, map[string][]byte{}},
		"wanted":                 {other, map[string][]byte{"token": []byte("x")}, nil},
		"wanted, shorter":        {other, map[string][]byte{"token": {0, 0}}, nil},
		"wanted, empty":          {other, map[string][]byte{"token": {}}, nil},
		"wanted, no token":       {nil, map[string][]byte{"a": {0, 0, 0}}, nil},
		"wanted, no data":        {nil, nil, nil},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: test.labels}, Data: test.data, Type: "t"}
		before := secret.DeepCopy()
		got := Invalidate(secret)
		switch {
		case (got == nil) != (test.want == nil):
			t.Errorf("%s: got %v", name, got)
		case got != nil && (!maps.EqualFunc(got.Data, test.want, slices.Equal) || got.Name != "s" || got.Type != "t"):
			t.Errorf("%s: got %v", name, got)
		case got != nil && Invalidate(got) != nil:
			t.Errorf("%s: a second call changes the result", name)
		}
		if !maps.EqualFunc(before.Data, secret.Data, slices.Equal) {
			t.Errorf("%s: the input was changed", name)
		}
	}
	if base64.StdEncoding.EncodeToString(invalidToken) != "AAAA" {
		t.Error("the invalid token is not AAAA")
	}
}

func request(operation admissionv1.Operation, raw string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}, Operation: operation, Object: runtime.RawExtension{Raw: []byte(raw)},
	}}
}

func TestHandle(t *testing.T) {
	const labels = `"metadata":{"name":"s","labels":{"token-invalidator.resources.gardener.cloud/consider":"true"},"future":1}`
	for name, test := range map[string]struct {
		raw, want string
	}{
		"valid":       {`{` + labels + `,"data":{"token":"eA==","a":"Yg=="},"future":{}}`, `[{"op":"replace","path":"/data/token","value":"AAAA"}]`},
		"null":        {`{` + labels + `,"data":{"token":null}}`, `[{"op":"replace","path":"/data/token","value":"AAAA"}]`},
		"no token":    {`{` + labels + `,"data":{"a":"Yg=="}}`, `[{"op":"add","path":"/data/token","value":"AAAA"}]`},
		"invalid":     {`{` + labels + `,"data":{"token":"AAAA"}}`, ``},
		"no data":     {`{` + labels + `}`, ``},
		"restored":    {`{"metadata":{"name":"s"},"data":{"token":"AAAA","a":"Yg=="}}`, `[{"op":"remove","path":"/data/token"}]`},
		"case":        {`{` + labels + `,"Data":{"token":"eA=="}}`, ``},
		"token alone": {`{"metadata":{"name":"s"},"data":{"token":"AAAA"}}`, `[{"op":"remove","path":"/data"}]`},
		"wanted":      {`{"metadata":{"name":"s"},"data":{"token":"eA=="}}`, ``},
	} {
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			if got := patchOf(t, request(operation, test.raw)); got != test.want {
				t.Errorf("%s, %s: got %s", name, operation, got)
			}
		}
		// Other kinds and operations are not sent to the webhook. If they are, nothing is changed.
		other := request(admissionv1.Update, test.raw)
		other.Kind = metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		for _, request := range []admission.Request{other, request(admissionv1.Delete, ""), request(admissionv1.Connect, "")} {
			if got := patchOf(t, request); got != "" {
				t.Errorf("%s, %s of %s: got %s", name, request.Operation, request.Kind.Kind, got)
			}
		}
	}
}

// patchOf returns the patch in the response to a request, which must be allowed.
func patchOf(t *testing.T, request admission.Request) string {
	t.Helper()
	response := NewHandler().Handle(t.Context(), request)
	if !response.Allowed {
		t.Fatalf("not allowed: %+v", response.Result)
	}
	if len(response.Patches) == 0 {
		return ""
	}
	text, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestUnreadable checks that an object that cannot be decoded is refused, and that the message does not repeat it.
func TestUnreadable(t *testing.T) {
	for _, raw := range []string{
		``, `{`, `[]`, `"sensitive"`, `{"data":"sensitive"}`, `{"data":{"token":123456789}}`, `{"data":{"token":"sensitive!"}}`,
		`{"data":{"token":{"sensitive":1}}}`, `{"metadata":{"labels":{"a":987654321}}}`,
	} {
		response := NewHandler().Handle(t.Context(), request(admissionv1.Update, raw))
		if response.Allowed || response.Result.Code != http.StatusBadRequest {
			t.Errorf("%s: %+v", raw, response)
			continue
		}
		for _, bytes := range []string{"sensitive", "123456789", "987654321"} {
			if strings.Contains(response.Result.Message, bytes) {
				t.Errorf("%s: the error is %s", raw, response.Result.Message)
			}
		}
	}
}

// FuzzHandle checks, for any input, that a patch is a single operation on the token, and that an error does not repeat the
// input.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"labels":{"token-invalidator.resources.gardener.cloud/consider":"true"}},"data":{"token":"eA=="}}`,
		`{"data":{"token":"AAAA"}}`, `{"data":{"TOKEN":"AAAA"}}`, `{"Data":{"token":"AAAA"}}`, `{"data":null,"stringData":{"token":"x"}}`, `{"data":{"token":12}}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		response := NewHandler().Handle(t.Context(), request(admissionv1.Update, string(raw)))
		if !response.Allowed {
			if got := response.Result.Message; got != "the object is not a valid Secret of version v1: its fields do not have the types of the API" {
				t.Errorf("the error is %s", got)
			}
			return
		}
		if len(response.Patches) == 0 {
			return
		}
		operation := response.Patches[0]
		switch text := fmt.Sprint(operation.Operation, " ", operation.Path, " ", operation.Value); {
		case len(response.Patches) == 1 && slices.Contains([]string{"remove /data/token <nil>", "remove /data <nil>", "add /data/token AAAA", "replace /data/token AAAA"}, text):
		default:
			t.Errorf("the patch is %v", response.Patches)
		}
	})
}
