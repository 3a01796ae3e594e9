package validation

import (
	"context"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/deletionprotection"
	"github.com/trellis-k8s/trellis/test/kit"
)

// smallPages reads at most two objects at a time.
func smallPages(c client.WithWatch) client.Reader {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			all := (&client.ListOptions{}).ApplyOptions(options)
			all.Limit = min(all.Limit, 2)
			return c.List(ctx, list, all)
		},
	})
}

// review is the review of a deletion without the object, as API servers before Kubernetes 1.15 send it.
func (f *fixture) review(kindName, name string) admission.Request {
	f.Helper()
	kind := kindOf(f, kindName)
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind:     metav1.GroupVersionKind(kind.GroupVersionKind),
		Resource: metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Plural},
		Name:     name, Operation: admissionv1.Delete,
	}}
	if kind.Namespaced {
		request.Namespace = f.namespace
	}
	return request
}

// TestReviewWithoutObject checks that the webhook then reads the object, or for a collection all objects of the namespace, from the API
// server in pages.
func TestReviewWithoutObject(t *testing.T) {
	f := newFixture(t)
	other := &fixture{T: t, client: f.client, namespace: kit.NewNamespace(f, f.client, "validation", nil)}
	other.protectedObjects("Infrastructure", []string{"a", "z"})
	f.protectedObjects("Infrastructure", []string{"a", "b", "c", "d", "e"}, "a", "b", "c")
	handler := deletionprotection.NewHandler(smallPages(f.client))
	want := func(name, message string) {
		f.Helper()
		response := handler.Handle(f.Context(), f.review("Infrastructure", name))
		if response.Allowed != (message == "") || message != "" && (response.Result.Code != http.StatusForbidden || response.Result.Message != message) {
			f.Errorf("%q: the response is %+v", name, response)
		}
	}
	want("a", "")
	want("e", denial)
	want("z", "")
	want("", denial+`: Infrastructure "d", "e"`)
	for _, name := range []string{"d", "e"} {
		f.annotate(f.read("Infrastructure", name), "true")
	}
	want("", "")
}

// TestReviewOfDefinitionsWithoutObject checks that among all definitions, only those with the label count.
func TestReviewOfDefinitionsWithoutObject(t *testing.T) {
	f := newFixture(t)
	handler := deletionprotection.NewHandler(smallPages(f.client))
	review := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Resource:  metav1.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		Operation: admissionv1.Delete,
	}}
	names := map[string]string{}
	for _, label := range []string{"true", "false"} {
		object := definition(label+"."+f.namespace+".example.com", "v1", "Thing", "things", apiextensionsv1.NamespaceScoped)
		object.Labels = map[string]string{deletionprotection.LabelDeletionProtected: label}
		f.create(object)
		names[label] = object.Name
		f.Cleanup(func() { kit.Must(f, f.client.Delete(context.Background(), object)) })
	}
	response := handler.Handle(f.Context(), review)
	if response.Allowed || !strings.Contains(response.Result.Message, names["true"]) || strings.Contains(response.Result.Message, names["false"]) {
		f.Errorf("the response is %+v", response)
	}
	for label, allowed := range map[string]bool{"true": false, "false": true} {
		review.Name = names[label]
		if response := handler.Handle(f.Context(), review); response.Allowed != allowed || !allowed && response.Result.Message != denial {
			f.Errorf("with the label %s the response is %+v", label, response)
		}
	}
}

// TestReviewOfUnknownKind checks that a kind that the client does not find, perhaps only not yet, is not treated as unprotected.
func TestReviewOfUnknownKind(t *testing.T) {
	f := newFixture(t)
	review := f.review("Worker", "")
	review.Kind.Kind = "Unknown"
	response := deletionprotection.NewHandler(f.client).Handle(f.Context(), review)
	if response.Allowed || response.Result.Code != http.StatusServiceUnavailable || response.Result.Details.RetryAfterSeconds == 0 {
		f.Errorf("the response is %+v", response)
	}
}
