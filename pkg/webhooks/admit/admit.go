// Package admit makes admission handlers of functions over objects. The functions decide; this package decodes, finds the smallest
// patch, and words the answers.
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

// Mutation changes an object of a request in place, or leaves it as it is. An error of Refuse or Unavailable is returned to the
// client in its own words, any other one as an internal error.
type Mutation[T client.Object] func(ctx context.Context, request *admission.Request, object T) error

// Mutating returns a handler that answers with the patch of what a mutation changes. It acts on creations and updates of objects
// and allows everything else as it is.
//
// The patch has what the mutation changes and nothing else: fields that T does not know, or writes in another form, stay as they were
// sent.
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
		// A copy, since the mutation may have put one value into two places.
		patch, err := difference(request.Object.Raw, before, object.DeepCopyObject())
		if err != nil {
			return answer(request, err)
		}
		return patched(patch)
	})
}

// Validation objects to a request, or returns nil. An error of Refuse or Unavailable is returned to the client in its own words, any
// other one as an internal error.
type Validation func(ctx context.Context, request *admission.Request) error

// Validating returns a handler that allows what a validation does not object to.
func Validating(validate Validation) admission.Handler {
	return handler(func(ctx context.Context, request *admission.Request) admission.Response {
		if err := validate(ctx, request); err != nil {
			return answer(request, err)
		}
		return admission.Allowed("")
	})
}

// ByKind returns a handler that leaves each request to the handler of its kind (as the webhook's rules name it, of any version) and
// allows other kinds as they are.
func ByKind(handlers map[schema.GroupKind]admission.Handler) admission.Handler {
	return handler(func(ctx context.Context, request *admission.Request) admission.Response {
		responsible, found := handlers[schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}]
		if !found {
			return admission.Allowed("")
		}
		return responsible.Handle(ctx, *request)
	})
}

// handler is a function as a handler.
type handler func(ctx context.Context, request *admission.Request) admission.Response

// Handle calls the function. What has no operation comes from no API server, and is refused.
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

// patched allows a request with a patch, or as it is if the patch is empty.
func patched(patch []jsonpatch.Operation) admission.Response {
	if len(patch) == 0 {
		return admission.Allowed("")
	}
	return admission.Response{Patches: patch, AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// malformed refuses a request whose object cannot be read. The error may repeat the object, so it is not returned.
func malformed(request *admission.Request, _ error) admission.Response {
	return answer(request, Refuse(http.StatusBadRequest, "the object is not a valid %s of version %s: its fields do not have the types of the API",
		request.Kind.Kind, schema.GroupVersion{Group: request.Kind.Group, Version: request.Kind.Version}))
}
