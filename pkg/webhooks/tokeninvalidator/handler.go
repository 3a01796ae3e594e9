package tokeninvalidator

import (
	"context"
	"errors"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/json"
)

// Path is where gardener-resource-manager serves the webhook.
const Path = "/webhooks/invalidate-service-account-token-secret"

// tokenPath is the only path that a patch of this webhook has.
const tokenPath = "/data/" + corev1.ServiceAccountTokenKey

// errNotASecret is all that is said of what cannot be read: the error of the decoder may repeat what it has read.
var errNotASecret = errors.New("the object of the request cannot be read as a Secret")

var secretKind = metav1.GroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

// Handler answers the API server's requests about Secrets that are created and updated. It has no effect but its answer, so that it
// takes part in dry runs. The zero value is ready for use.
type Handler struct{}

// Handle answers one request. It refuses what cannot be read.
func (Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Kind != secretKind || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	secret := &corev1.Secret{}
	if err := json.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, secret); err != nil {
		return admission.Errored(http.StatusBadRequest, errNotASecret)
	}
	changed := Invalidate(secret)
	if changed == nil {
		return admission.Allowed("")
	}
	return admission.Patched("", difference(secret, changed))
}

// difference returns what makes the token of a Secret that of another one, which differs in nothing else.
func difference(before, after *corev1.Secret) jsonpatch.Operation {
	_, had := before.Data[corev1.ServiceAccountTokenKey]
	token, has := after.Data[corev1.ServiceAccountTokenKey]
	switch {
	case !has:
		return jsonpatch.NewOperation("remove", tokenPath, nil)
	case had:
		return jsonpatch.NewOperation("replace", tokenPath, token)
	}
	return jsonpatch.NewOperation("add", tokenPath, token)
}
