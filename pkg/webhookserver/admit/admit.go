// Package admit turns functions over objects into admission handlers. The functions decide. This package decodes the
// request, computes the smallest patch and builds the response.
package admit

import (
	"context"
	"net/http"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Mutation changes the object of a request in place, or leaves it unchanged. The message of an error from Refuse or
// Unavailable is returned to the client verbatim. Any other error is returned as an internal error.
type Mutation[T client.Object] func(ctx context.Context, request *admission.Request, object T) error

// Mutating returns a handler that responds with a patch of the changes that a mutation makes. It acts on creations and
// updates of objects and allows all other requests without a patch.
//
// The patch contains only the changes of the mutation. Fields that T does not know, or encodes differently, keep the form
// in which they were sent.
func Mutating[T client.Object](newObject func() T, mutate Mutation[T]) admission.Handler {
	return handler(func(ctx context.Context, request *admission.Request) admission.Response {
		if !writesObject(request) {
			return admission.Allowed("")
		}
		object := newObject()
		if err := json.Unmarshal(request.Object.Raw, object); err != nil {
			return malformed(request, err)
		}
		before := object.DeepCopyObject()
		if err := mutate(ctx, request, object); err != nil {
			return answer(request, err)
		}
		// Copy the object because the mutation might have stored one value in two places.
		patch, err := difference(request.Object.Raw, before, object.DeepCopyObject())
		if err != nil {
			return answer(request, err)
		}
		return patched(patch)
	})
}

// Validation returns an error if it rejects a request, nil otherwise. The message of an error from Refuse or Unavailable
// is returned to the client verbatim. Any other error is returned as an internal error.
type Validation func(ctx context.Context, request *admission.Request) error

// Validating returns a handler that allows the requests that a validation accepts.
func Validating(validate Validation) admission.Handler {
	return handler(func(ctx context.Context, request *admission.Request) admission.Response {
		if err := validate(ctx, request); err != nil {
			return answer(request, err)
		}
		return admission.Allowed("")
	})
}

// ByKind returns a handler that delegates each request to the handler of its kind. The kind is the one in the webhook's
// rules, in any version. Requests for other kinds are allowed without a patch.
func ByKind(handlers map[schema.GroupKind]admission.Handler) admission.Handler {
	return handler(func(ctx context.Context, request *admission.Request) admission.Response {
		responsible, found := handlers[schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}]
		if !found {
			return admission.Allowed("")
		}
		return responsible.Handle(ctx, *request)
	})
}

// handler adapts a function to admission.Handler.
type handler func(ctx context.Context, request *admission.Request) admission.Response

// Handle calls the function. It rejects a request without an operation, because no API server sends one.
func (h handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation == "" {
		return answer(&request, Refuse(http.StatusBadRequest, "the body is not an AdmissionReview with a request"))
	}
	return h(ctx, &request)
}

// writesObject reports whether a request creates or updates an object itself, not one of its subresources.
func writesObject(request *admission.Request) bool {
	return request.SubResource == "" &&
		slices.Contains([]admissionv1.Operation{admissionv1.Create, admissionv1.Update}, request.Operation)
}

// patched allows a request with a patch. It omits the patch if it is empty.
func patched(patch []jsonpatch.Operation) admission.Response {
	if len(patch) == 0 {
		return admission.Allowed("")
	}
	return admission.Response{Patches: patch, AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// malformed rejects a request whose object cannot be decoded. The decoding error might quote the object, so it is not
// returned.
func malformed(request *admission.Request, _ error) admission.Response {
	return answer(request, Refuse(http.StatusBadRequest,
		"the object is not a valid %s of version %s: its fields do not have the types of the API",
		request.Kind.Kind, schema.GroupVersion{Group: request.Kind.Group, Version: request.Kind.Version}))
}

// Decode returns the object of a request, decoded from its JSON form, such as request.Object.Raw. The error rejects the
// request, and does not quote the object.
func Decode[T any](request *admission.Request, raw []byte) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, Refuse(http.StatusBadRequest, "the object is not a valid %s of version %s: its fields do not have the types of the API",
			request.Kind.Kind, schema.GroupVersion{Group: request.Kind.Group, Version: request.Kind.Version})
	}
	return object, nil
}
