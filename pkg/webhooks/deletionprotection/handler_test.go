package deletionprotection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// reader is a fake reader that returns objects with numbered names, or an error, for every list.
type reader struct {
	client.Reader
	objects int
	err     error
}

func (r reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	page, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok {
		return fmt.Errorf("got a list of type %T", list)
	}
	for i := range r.objects {
		page.Items = append(page.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("object-%02d", i)}})
	}
	return r.err
}

func request(group, version, resource, kind, name, old string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Delete, Name: name, Namespace: "garden",
		Kind:      metav1.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Resource:  metav1.GroupVersionResource{Group: group, Version: version, Resource: resource},
		OldObject: runtime.RawExtension{Raw: []byte(old)},
	}}
}

func worker(name, old string) admission.Request {
	return request("extensions.gardener.cloud", "v1alpha1", "workers", "Worker", name, old)
}

const protectedObject = `{"metadata":{"name":"a","labels":{"gardener.cloud/deletion-protected":"true"}}}`

func TestProtectedObjects(t *testing.T) {
	handler := NewHandler(reader{})
	creation, subresource := worker("a", protectedObject), worker("a", protectedObject)
	creation.Operation, subresource.SubResource = admissionv1.Create, "status"
	for name, test := range map[string]struct {
		request admission.Request
		allowed bool
	}{
		"a worker":                   {worker("a", protectedObject), false},
		"another operation":          {creation, true},
		"a subresource":              {subresource, true},
		"a bastion":                  {request("extensions.gardener.cloud", "v1alpha1", "bastions", "Bastion", "a", protectedObject), true},
		"a cluster":                  {request("extensions.gardener.cloud", "v1alpha1", "clusters", "Cluster", "a", protectedObject), true},
		"another version":            {request("extensions.gardener.cloud", "v1", "workers", "Worker", "a", protectedObject), true},
		"another group":              {request("machine.sapcloud.io", "v1alpha1", "workers", "Worker", "a", protectedObject), true},
		"an Etcd":                    {request("druid.gardener.cloud", "v1alpha1", "etcds", "Etcd", "a", protectedObject), false},
		"a definition":               {request("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "a", protectedObject), false},
		"a definition of v1beta1":    {request("apiextensions.k8s.io", "v1beta1", "customresourcedefinitions", "CustomResourceDefinition", "a", protectedObject), false},
		"a definition without label": {request("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "a", `{}`), true},
	} {
		if response := handler.Handle(t.Context(), test.request); response.Allowed != test.allowed {
			t.Errorf("%s: the response is %+v", name, response)
		}
	}
}

// TestReadersErrors checks that nothing is decided if a read fails, and that an object that is not found counts as deleted.
func TestReadersErrors(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "workers"}, "")
	if response := NewHandler(reader{err: notFound}).Handle(t.Context(), worker("", "")); !response.Allowed {
		t.Errorf("the response is %+v", response)
	}
	response := NewHandler(reader{err: errors.New("the network is down")}).Handle(t.Context(), worker("", ""))
	const want = "cannot read whether the deletion of workers is confirmed; try again: the network is down"
	if response.Allowed || response.Result.Code != http.StatusServiceUnavailable || response.Result.Message != want {
		t.Errorf("the response is %+v", response)
	}
}

// TestManyUnconfirmedObjects checks that the first ten objects are named.
func TestManyUnconfirmedObjects(t *testing.T) {
	response := NewHandler(reader{objects: 12}).Handle(t.Context(), worker("", ""))
	if want := `to delete: Worker "object-00", `; !strings.Contains(response.Result.Message, want) {
		t.Errorf("the message is %s", response.Result.Message)
	}
	if want := `"object-09" and 2 more`; !strings.HasSuffix(response.Result.Message, want) {
		t.Errorf("the message is %s", response.Result.Message)
	}
	response = NewHandler(reader{objects: 10}).Handle(t.Context(), worker("", ""))
	if want := `"object-09"`; !strings.HasSuffix(response.Result.Message, want) {
		t.Errorf("the message is %s", response.Result.Message)
	}
}

// FuzzOldObject checks that the deletion of a decodable object is allowed if and only if it is confirmed or the object is being
// deleted.
func FuzzOldObject(f *testing.F) {
	for _, seed := range []string{
		"null", "[]", `"a"`, "{", protectedObject, `{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`,
		`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":true}}}`, `{"metadata":{"annotations":null}}`,
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`, `{"metadata":{"deletionTimestamp":1}}`, `{"metadata":[]}`,
		`{"Metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`,
	} {
		f.Add("a", seed)
		f.Add("", seed)
	}
	f.Fuzz(func(t *testing.T, name, old string) {
		response := NewHandler(reader{objects: 1}).Handle(t.Context(), worker(name, old))
		readable := response.Allowed || response.Result.Code != http.StatusBadRequest
		if readable && response.Allowed != confirmedByHand(old) {
			t.Errorf("the response is %+v", response)
		}
		if !response.Allowed && (response.Result == nil || response.Result.Message == "" || response.Result.Code < 400) {
			t.Errorf("the refusal has no message: %+v", response)
		}
	})
}

// confirmedByHand decodes an object in another way than the handler.
func confirmedByHand(old string) bool {
	var object map[string]json.RawMessage
	if old == "" || json.Unmarshal([]byte(old), &object) != nil {
		return false
	}
	meta := metav1.ObjectMeta{}
	if raw, found := object["metadata"]; found && utiljson.Unmarshal(raw, &meta) != nil {
		return false
	}
	confirmed, err := strconv.ParseBool(meta.Annotations["confirmation.gardener.cloud/deletion"])
	return err == nil && confirmed || meta.DeletionTimestamp != nil
}
