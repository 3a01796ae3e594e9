// Package admittest tests handlers of package admit by what they make of objects.
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

// Namespace is that of all requests.
const Namespace = "the-namespace"

// Handler is one under test, for objects of type T.
type Handler[T client.Object] struct {
	admission.Handler
	// Kind is that of the objects.
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
	// After is what the handler makes of it. Without it, the object stays as it is.
	After string
	// Refusal is the whole message with which the handler refuses the object instead.
	Refusal string
	// Code is the HTTP status of the refusal.
	Code int32
}

// Run checks what the handler answers, that another call changes nothing more, and that fields which the type does not know stay.
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
		t.Errorf("the object is refused with %d, %s\nwanted is                 %d, %s", response.Result.Code, response.Result.Message, test.Code, test.Refusal)
	}
}

// Twice returns the object that the handler makes, and checks that it changes nothing if it is called with that.
func (h Handler[T]) Twice(t *testing.T, object []byte) []byte {
	t.Helper()
	once := h.Apply(t, object)
	response := h.Handle(t.Context(), h.request(once))
	if !response.Allowed || len(response.Patches) > 0 {
		t.Errorf("called with its own result %s, the handler answers %+v", once, response)
	}
	return once
}

// Apply returns the object that the handler makes. The handler must allow it.
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

// KeepsTheRest checks that the handler leaves alone what it is not to change, among it fields that the type does not know.
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
		t.Errorf("beside what it may change, the handler makes %s\nof %s", after, before)
	}
}

// addUnknown adds a field that no type has to the object itself and to all members of its lists, and returns how many it added.
func addUnknown(content map[string]any) int {
	count := addToMembers(content)
	content["fromTheFuture"] = map[string]any{"a": int64(1)}
	return count + 1
}

// addToMembers leaves out lists in members of lists, which a handler may replace as a whole.
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

// Robust is the body of a fuzz test: whatever is sent, the handler gives an answer that is well-formed. What it allows can be patched
// and is not changed by another call. Of an object in the form in which API servers send it, the rest is kept.
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

// wellFormed checks an answer: it allows, perhaps with a patch, or it says why not.
func (h Handler[T]) wellFormed(t *testing.T, response admission.Response) {
	t.Helper()
	refused := !response.Allowed && len(response.Patches) == 0 && response.Result != nil && response.Result.Code >= 400 && response.Result.Message != ""
	if !response.Allowed && !refused {
		t.Errorf("the answer is %+v", response)
	}
}

// erased returns an object without what the handler may change.
func (h Handler[T]) erased(t *testing.T, object []byte) []byte {
	t.Helper()
	result := h.New()
	if err := json.Unmarshal(object, result); err != nil {
		t.Fatal(err)
	}
	h.Erase(result)
	return h.encode(t, result)
}

// object returns an object of YAML in the form in which an API server sends it.
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

// request is a creation.
func (h Handler[T]) request(object []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Kind: h.Kind, Namespace: Namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object},
	}}
}
