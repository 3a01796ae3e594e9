// Package updaterestriction lets only gardenlets write objects with public data of Shoots, such as CA bundles. Third parties
// trust this data.
package updaterestriction

import (
	"context"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/update-restriction"

// The accounts that may write in part: the garbage collector deletes objects whose owner is gone, and the control plane of
// the garden renews its own.
const (
	garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"
	internalAccount  = "system:serviceaccount:kube-system:gardener-internal"
)

// New returns the handler. The object selector of the webhook selects the objects.
func New() admission.Handler {
	return admit.Validating(func(_ context.Context, request *admission.Request) error {
		if allowed(request.UserInfo, request.Operation) {
			return nil
		}
		return admit.Refuse(http.StatusForbidden, "%s %s/%s has the label %s: only gardenlets may write it",
			request.Kind.Kind, request.Namespace, request.Name, constants.LabelUpdateRestriction)
	})
}

// allowed reports whether a user may make an operation on a restricted object.
func allowed(user authenticationv1.UserInfo, operation admissionv1.Operation) bool {
	switch {
	case slices.Contains(user.Groups, constants.SeedsGroup), slices.Contains(user.Groups, constants.ShootsGroup):
		return true
	case user.Username == garbageCollector:
		return operation == admissionv1.Delete
	case user.Username == internalAccount:
		return operation == admissionv1.Update
	}
	return false
}
