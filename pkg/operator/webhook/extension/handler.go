// Package extension has the webhooks of the operator's Extensions: their defaults, their rules, and their protection from deletion
// while they are needed.
package extension

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/validation"
	"github.com/trellis-k8s/trellis/pkg/ratchet"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// The paths of the webhooks.
const (
	PathDefault  = "/webhooks/default-operator-gardener-cloud-v1alpha1-extension"
	PathValidate = "/webhooks/validate-operator-gardener-cloud-v1alpha1-extension"
)

// NewDefaulting returns the handler that sets defaults.
func NewDefaulting() admission.Handler {
	return admit.Mutating(func() *v1alpha1.Extension { return &v1alpha1.Extension{} },
		func(_ context.Context, _ *admission.Request, extension *v1alpha1.Extension) error {
			v1alpha1.SetDefaultsExtension(extension)
			return nil
		})
}

// NewValidating returns the handler that checks Extensions.
func NewValidating() admission.Handler {
	return admit.Validating(func(_ context.Context, request *admission.Request) error {
		if request.SubResource != "" {
			return nil
		}
		if request.Operation == admissionv1.Delete {
			old, err := admit.Decode[v1alpha1.Extension](request, request.OldObject.Raw)
			if err != nil {
				return err
			}
			return deletable(old)
		}
		extension, err := admit.Decode[v1alpha1.Extension](request, request.Object.Raw)
		if err != nil {
			return err
		}
		if request.Operation == admissionv1.Create {
			return refuse(extension, validation.ValidateExtension(extension))
		}
		old, err := admit.Decode[v1alpha1.Extension](request, request.OldObject.Raw)
		if err != nil {
			return err
		}
		return refuse(extension, ratchet.Errors(
			extension, old, validation.ValidateExtensionUpdate(extension, old), validation.ValidateExtension(old)))
	})
}

// deletable refuses the deletion of an Extension that something needs: its objects could not be deleted without it.
func deletable(extension *v1alpha1.Extension) error {
	if extension.DeletionTimestamp != nil {
		return nil
	}
	for condition, remedy := range map[corev1beta1.ConditionType]string{
		v1alpha1.ExtensionRequiredRuntime: "the runtime cluster needs it: see the message of its condition RequiredRuntime, and remove what uses it first",
		v1alpha1.ExtensionRequiredVirtual: "Seeds need it: delete the objects of its types in them first",
	} {
		found := corev1beta1.FindCondition(extension.Status.Conditions, condition)
		if found != nil && found.Status == corev1beta1.ConditionTrue {
			return admit.Refuse(http.StatusForbidden, "Extension %s cannot be deleted, because %s", extension.Name, remedy)
		}
	}
	return nil
}

func refuse(extension *v1alpha1.Extension, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return admit.RefuseWith(apierrors.NewInvalid(v1alpha1.Kind("Extension"), extension.Name, errs).ErrStatus)
}
