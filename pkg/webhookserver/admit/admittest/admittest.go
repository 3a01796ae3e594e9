// Package admittest tests handlers of package admit by comparing objects before and after admission.
package admittest

import (
	"bytes"
	"fmt"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

// Namespace is the namespace of all requests.
const Namespace = "the-namespace"

// Handler is a handler under test for objects of type T.
type Handler[T client.Object] struct {
	admission.Handler
	// Kind is the kind of the objects.
	Kind metav1.GroupVersionKind
	// New returns an empty object.
	New func() T
	// Erase removes from an object everything that the handler may change.
	Erase func(T)
}

// Case is an object of a table of tests, in YAML without apiVersion and kind.
type Case struct {
	// Before is the object that a client sends.
	Before string
	// After is the expected object. If it is empty, the handler must leave the object unchanged.
	After string
	// Refusal is the complete message with which the handler must reject the object.
	Refusal string
	// Code is the HTTP status of the refusal.
	Code int32
}

// Run checks the response of the handler, that the handler is idempotent, and that it keeps fields that the type does not
// know.
func (h Handler[T]) Run(t *testing.T, cases map[string]Case) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := h.object(t, test.Before)
			if test.Refusal != "" {
				h.refuses(t, before, test)
				return
			}
			got := h.Twice(t, before)
			want := before
			if test.After != "" {
				want = h.object(t, test.After)
			}
			if !jsonpatch.Equal(got, want) {
				t.Errorf("the handler makes %s\nwanted is        %s", got, want)
			}
			h.KeepsTheRest(t, before)
		})
	}
}

func (h Handler[T]) refuses(t *testing.T, object []byte, test Case) {
	t.Helper()
	response := h.Handle(t.Context(), h.request(object))
	if response.Allowed || len(response.Patches) > 0 || response.Result == nil {
		t.Fatalf("the response is %+v", response)
	}
	if response.Result.Message != test.Refusal || response.Result.Code != test.Code {
		t.Errorf("the object is refused with %d, %s\nwanted is                 %d, %s",
			response.Result.Code, response.Result.Message, test.Code, test.Refusal)
	}
}

// Twice returns the object that the handler produces, and checks that a second call does not change it.
func (h Handler[T]) Twice(t *testing.T, object []byte) []byte {
	t.Helper()
	once := h.Apply(t, object)
	response := h.Handle(t.Context(), h.request(once))
	if !response.Allowed || len(response.Patches) > 0 {
		t.Errorf("called with its own result %s, the handler answers %+v", once, response)
	}
	return once
}

// Apply returns the object that the handler produces. The handler must allow it.
func (h Handler[T]) Apply(t *testing.T, object []byte) []byte {
	t.Helper()
	response := h.Handle(t.Context(), h.request(object))
	if !response.Allowed {
		t.Fatalf("the handler does not allow %s: %+v", object, response.Result)
	}
	return patched(t, object, response)
}

func patched(t *testing.T, object []byte, response admission.Response) []byte {
	t.Helper()
	if len(response.Patches) == 0 {
		return object
	}
	encoded, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	result, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("the patch %s does not apply to %s: %v", encoded, object, err)
	}
	return result
}

// KeepsTheRest checks that the handler changes only the fields in its scope and keeps fields that the type does not know.
func (h Handler[T]) KeepsTheRest(t *testing.T, object []byte) {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(object, &content); err != nil {
		t.Fatal(err)
	}
	unknown := addUnknown(content)
	object, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	result := h.Apply(t, object)
	if got := bytes.Count(result, []byte(`"fromTheFuture":`)); got != unknown {
		t.Errorf("of %d unknown fields, the handler leaves %d: %s", unknown, got, result)
	}
	if before, after := h.erased(t, object), h.erased(t, result); !jsonpatch.Equal(before, after) {
		t.Errorf("outside of its scope, the handler produces %s\nfrom %s", after, before)
	}
}

// addUnknown adds an unknown field to the object and to all elements of its lists, and returns the number of added
// fields.
func addUnknown(content map[string]any) int {
	count := addToMembers(content)
	content["fromTheFuture"] = map[string]any{"a": int64(1)}
	return count + 1
}

// addToMembers skips lists within list elements, because a handler may replace those as a whole.
func addToMembers(value any) int {
	count := 0
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			count += addToMembers(child)
		}
	case []any:
		for _, member := range value {
			if fields, isMap := member.(map[string]any); isMap {
				fields["fromTheFuture"] = map[string]any{"a": int64(1)}
				count++
			}
		}
	}
	return count
}

// Robust is the body of a fuzz test. It checks that the handler returns a well-formed response to any input, and that an
// allowed request can be patched and is not changed by a second call. If the input is an object, it also checks that the
// handler keeps all fields outside of its scope.
func (h Handler[T]) Robust(t *testing.T, raw []byte) {
	t.Helper()
	response := h.Handle(t.Context(), h.request(raw))
	h.wellFormed(t, response)
	object := h.New()
	if !response.Allowed || json.Unmarshal(raw, object) != nil {
		return
	}
	h.Twice(t, raw)
	h.KeepsTheRest(t, h.encode(t, object))
}

// wellFormed checks a response. It either allows the request, perhaps with a patch, or rejects it with a code and a
// message.
func (h Handler[T]) wellFormed(t *testing.T, response admission.Response) {
	t.Helper()
	refused := !response.Allowed && len(response.Patches) == 0 &&
		response.Result != nil && response.Result.Code >= 400 && response.Result.Message != ""
	if !response.Allowed && !refused {
		t.Errorf("the answer is %+v", response)
	}
}

// erased returns an object without the fields that the handler may change.
func (h Handler[T]) erased(t *testing.T, object []byte) []byte {
	t.Helper()
	result := h.New()
	if err := json.Unmarshal(object, result); err != nil {
		t.Fatal(err)
	}
	h.Erase(result)
	return h.encode(t, result)
}

// object decodes YAML and encodes the object as an API server sends it.
func (h Handler[T]) object(t *testing.T, text string) []byte {
	t.Helper()
	apiVersion := h.Kind.Version
	if h.Kind.Group != "" {
		apiVersion = h.Kind.Group + "/" + apiVersion
	}
	object := h.New()
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "apiVersion: %s\nkind: %s\n%s", apiVersion, h.Kind.Kind, text), object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return h.encode(t, object)
}

func (h Handler[T]) encode(t *testing.T, object T) []byte {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// request returns an admission request that creates an object.
func (h Handler[T]) request(object []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Kind: h.Kind, Namespace: Namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object},
	}}
}
