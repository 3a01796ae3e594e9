package dryrun

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// server is a fake API server with at most one object. Only reads and dry runs succeed, because a preview writes nothing.
type server struct {
	dynamic.ResourceInterface
	has *unstructured.Unstructured
	// applyErr is the error of an apply.
	applyErr error
	asked    int
}

func (s *server) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	if s.has == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "a")
	}
	return s.has.DeepCopy(), nil
}

func (s *server) Patch(_ context.Context, _ string, kind types.PatchType, body []byte, options metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	if kind != types.ApplyPatchType || !slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
		return nil, errors.New("something is written")
	}
	s.asked++
	if s.applyErr != nil {
		return nil, s.applyErr
	}
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	return applied, nil
}

func configMap(colour string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "1"},
		"data": map[string]any{"colour": colour},
	}}
}

func newResource(s *server, as string) *resource {
	ref := object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: "a"}
	return &resource{
		shared: &shared{namespaces: map[string]bool{}, definedKinds: map[schema.GroupKind]bool{}, forbidden: map[string]bool{}},
		copy:   &Copy{Ref: ref}, ref: ref, client: s, as: as,
	}
}

func colourOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "gone"
	}
	colour, _, _ := unstructured.NestedString(obj.Object, "data", "colour")
	return colour
}

const red = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"a"},"data":{"colour":"red"}}`

// TestEdits checks that patches change copies, and that nothing is written.
func TestEdits(t *testing.T) {
	for name, test := range map[string]struct {
		has   *unstructured.Unstructured
		kind  types.PatchType
		body  string
		after string
		is    func(error) bool
	}{
		"merge":          {configMap("blue"), types.MergePatchType, `{"data":{"colour":"red"}}`, "red", nil},
		"JSON":           {configMap("blue"), types.JSONPatchType, `[{"op":"replace","path":"/data/colour","value":"red"}]`, "red", nil},
		"test fails":     {configMap("blue"), types.JSONPatchType, `[{"op":"test","path":"/data/colour","value":"red"}]`, "blue", apierrors.IsInvalid},
		"not there":      {nil, types.MergePatchType, `{}`, "gone", apierrors.IsNotFound},
		"strategic":      {configMap("blue"), types.StrategicMergePatchType, `{}`, "blue", func(err error) bool { return errors.Is(err, errNotSupported) }},
		"apply, new":     {nil, types.ApplyPatchType, red, "red", nil},
		"apply, asked":   {configMap("blue"), types.ApplyPatchType, red, "red", nil},
		"not an object":  {configMap("blue"), types.MergePatchType, `{"kind":null}`, "blue", func(err error) bool { return err != nil }},
		"not even a map": {configMap("blue"), types.JSONPatchType, `{}`, "blue", func(err error) bool { return err != nil }},
	} {
		r := newResource(&server{has: test.has}, "")
		_, err := r.Patch(t.Context(), "a", test.kind, []byte(test.body), metav1.PatchOptions{})
		if (err != nil) != (test.is != nil) || err != nil && !test.is(err) {
			t.Errorf("%s: error %v", name, err)
		}
		if got, before := colourOf(r.copy.After), colourOf(r.copy.Before); got != test.after || before != colourOf(test.has) {
			t.Errorf("%s: %s, before %s; want %s", name, got, before, test.after)
		}
	}
}

// TestApplyThatIsNotAnswered checks that the preview continues without the API server if only the dry run is not permitted.
func TestApplyThatIsNotAnswered(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))
	for name, test := range map[string]struct {
		err       error
		as        string
		namespace bool
		fails     bool
		forbidden int
	}{
		"not permitted":                     {forbidden, "", false, false, 1},
		"a ServiceAccount is not permitted": {forbidden, "system:serviceaccount:a:b", false, true, 0},
		"in a namespace to come":            {apierrors.NewNotFound(schema.GroupResource{}, "shop"), "", true, false, 0},
		"in a namespace to come, hidden":    {forbidden, "system:serviceaccount:a:b", true, false, 0},
		"without its namespace":             {apierrors.NewNotFound(schema.GroupResource{}, "shop"), "", false, true, 0},
		"refused":                           {apierrors.NewBadRequest("no"), "", true, true, 0},
	} {
		r := newResource(&server{applyErr: test.err}, test.as)
		r.shared.namespaces["shop"] = test.namespace
		_, err := r.Patch(t.Context(), "a", types.ApplyPatchType, []byte(red), metav1.PatchOptions{})
		if (err != nil) != test.fails || len(r.shared.forbidden) != test.forbidden || !test.fails && colourOf(r.copy.After) != "red" {
			t.Errorf("%s: error %v, %v, %+v", name, err, r.shared.forbidden, r.copy.After)
		}
	}
}

// TestReplaced deletes an object and applies it again. The API server cannot preview that, because it still has the old object.
func TestReplaced(t *testing.T) {
	s := &server{has: configMap("blue")}
	r := newResource(s, "")
	if err := r.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the deleted object still exists: %v", err)
	}
	if _, err := r.Patch(t.Context(), "a", types.ApplyPatchType, []byte(red), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if !r.copy.Replaced || colourOf(r.copy.After) != "red" || colourOf(r.copy.Before) != "blue" || s.asked > 0 {
		t.Errorf("%+v, %d requests", r.copy, s.asked)
	}
}

// TestNotes checks that the preview records the namespaces and kinds that it would create, because other objects depend on
// them.
func TestNotes(t *testing.T) {
	r := newResource(&server{}, "")
	r.shared.recordDefined(object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: "shop"}, nil)
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "shop.example.org", "names": map[string]any{"kind": "Coupon"},
	}}}
	r.shared.recordDefined(object.Ref{GroupVersionKind: schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	}, Name: "coupons.shop.example.org"}, definition)
	if !r.shared.createsNamespace("shop") || r.shared.createsNamespace("other") ||
		!r.shared.defines(schema.GroupKind{Group: "shop.example.org", Kind: "Coupon"}) || r.shared.defines(schema.GroupKind{Kind: "Coupon"}) {
		t.Errorf("%+v", r.shared)
	}
}
