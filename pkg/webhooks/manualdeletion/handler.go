// Package manualdeletion denies the deletion, by hand, of what a shoot depends on: ManagedResources of flows, namespaces of control planes,
// and Secrets that cannot be generated again. Parts of the system may delete them, and everybody may after a confirmation in the object.
//
// It protects from mistakes, not from attackers: who may change the labels or annotations of an object may also delete it.
//
// API servers send the object with each deletion, one by one for the deletion of a collection too. Nothing else is read.
package manualdeletion

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/admit"
)

// Path is where the webhook is served.
const Path = "/webhooks/validate-manual-deletion"

// Options say who may delete without a confirmation, beside kube-controller-manager.
type Options struct {
	// Users and Groups are names as API servers authenticate them.
	Users, Groups []string
}

// NewHandler returns the handler of deletions.
func NewHandler(options Options) admission.Handler {
	return admit.Validating(func(_ context.Context, request *admission.Request) error {
		if request.Operation != admissionv1.Delete || request.SubResource != "" || options.bySystem(request) {
			return nil
		}
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(request.OldObject.Raw, object); err != nil {
			return admit.Refuse(http.StatusBadRequest, "the metadata of the %s to delete cannot be read", request.Kind.Kind)
		}
		return check(request, object)
	})
}
