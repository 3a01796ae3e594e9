// Package manualdeletion denies manual deletions of objects that a shoot depends on: ManagedResources of flows,
// namespaces of control planes, and Secrets that cannot be regenerated. Components of the system may delete them. Other
// users must first confirm the deletion with an annotation.
//
// The webhook protects from mistakes, not from attackers: a user who may change the labels or annotations of an object
// can also delete it.
//
// API servers send the object with each deletion, also for each object of a deleted collection. The webhook reads no
// other objects.
package manualdeletion

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/validate-manual-deletion"

// Options name the users, in addition to kube-controller-manager, who may delete objects without a confirmation.
type Options struct {
	// Users and Groups are the names that API servers authenticate.
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
