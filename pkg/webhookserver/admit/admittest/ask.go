package admittest

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Write is a write request for tests of validating handlers.
type Write struct {
	Operation admissionv1.Operation
	Kind      schema.GroupVersionKind
	// Resource is the plural name of the kind.
	Resource string
	User     authenticationv1.UserInfo
	// Before and After are the object before and after the request, or nil.
	Before, After client.Object
}

// Ask returns the message with which a handler refuses a request, and its HTTP status; an empty message and 0 if it allows the
// request.
func Ask(t *testing.T, handler admission.Handler, write Write) (message string, code int32) {
	t.Helper()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: write.Operation, UserInfo: write.User,
		Kind:     metav1.GroupVersionKind{Group: write.Kind.Group, Version: write.Kind.Version, Kind: write.Kind.Kind},
		Resource: metav1.GroupVersionResource{Group: write.Kind.Group, Version: write.Kind.Version, Resource: write.Resource},
	}}
	for _, object := range []client.Object{write.Before, write.After} {
		if object != nil {
			request.Namespace, request.Name = object.GetNamespace(), object.GetName()
		}
	}
	encode := func(object client.Object) []byte {
		if object == nil {
			return nil
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	request.OldObject.Raw, request.Object.Raw = encode(write.Before), encode(write.After)
	response := handler.Handle(t.Context(), request)
	if response.Allowed {
		return "", 0
	}
	return response.Result.Message, response.Result.Code
}
