// Package garden has the webhooks of Gardens: their defaults, and the rules that the CustomResourceDefinition cannot express.
package garden

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/validation"
	"github.com/trellis-k8s/trellis/pkg/confirmation"
	"github.com/trellis-k8s/trellis/pkg/ratchet"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// The paths of the webhooks.
const (
	PathDefault  = "/webhooks/default-operator-gardener-cloud-v1alpha1-garden"
	PathValidate = "/webhooks/validate-operator-gardener-cloud-v1alpha1-garden"
)

// NewDefaulting returns the handler that sets defaults.
func NewDefaulting() admission.Handler {
	return admit.Mutating(func() *v1alpha1.Garden { return &v1alpha1.Garden{} },
		func(_ context.Context, _ *admission.Request, garden *v1alpha1.Garden) error {
			v1alpha1.SetDefaultsGarden(garden)
			return nil
		})
}

// NewValidating returns the handler that checks Gardens. The reader must read from the runtime cluster without a cache: a Garden or
// an Extension that was just created counts.
func NewValidating(reader client.Reader) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		if request.SubResource != "" {
			return nil
		}
		if request.Operation == admissionv1.Delete {
			return deletable(request)
		}
		garden, err := admit.Decode[v1alpha1.Garden](request, request.Object.Raw)
		if err != nil {
			return err
		}
		if request.Operation == admissionv1.Create {
			return created(ctx, reader, garden)
		}
		old, err := admit.Decode[v1alpha1.Garden](request, request.OldObject.Raw)
		if err != nil {
			return err
		}
		return updated(ctx, reader, garden, old)
	})
}

// deletable refuses the deletion of a Garden that is not confirmed.
func deletable(request *admission.Request) error {
	garden, err := admit.Decode[v1alpha1.Garden](request, request.OldObject.Raw)
	if err != nil {
		return err
	}
	if err := confirmation.Check(garden); err != nil {
		return admit.Refuse(http.StatusForbidden, "Garden %s: %w", garden.Name, err)
	}
	return nil
}

// created checks a new Garden. There can be one.
func created(ctx context.Context, reader client.Reader, garden *v1alpha1.Garden) error {
	gardens := &v1alpha1.GardenList{}
	if err := reader.List(ctx, gardens); err != nil {
		return fmt.Errorf("list the Gardens that exist: %w", err)
	}
	if len(gardens.Items) > 0 {
		return admit.Refuse(http.StatusForbidden, "there can be only one Garden, and %s exists already: change it, or delete it first", gardens.Items[0].Name)
	}
	errs := validation.ValidateGardenCreation(garden)
	unknown, err := unknownExtensions(ctx, reader, garden, nil)
	if err != nil {
		return err
	}
	return refuse(garden, append(errs, unknown...))
}

// updated checks a Garden that replaces another. An error that the stored one has as well does not prevent other changes.
func updated(ctx context.Context, reader client.Reader, garden, old *v1alpha1.Garden) error {
	errs := ratchet.Errors(garden, old, validation.ValidateGardenUpdate(garden, old), validation.ValidateGarden(old))
	unknown, err := unknownExtensions(ctx, reader, garden, old)
	if err != nil {
		return err
	}
	return refuse(garden, append(errs, unknown...))
}

// unknownExtensions returns an error for each type of an extension that a Garden newly asks for and no Extension offers to gardens.
func unknownExtensions(ctx context.Context, reader client.Reader, garden, old *v1alpha1.Garden) (field.ErrorList, error) {
	requested := typesOf(garden)
	if old != nil {
		before := typesOf(old)
		requested = slices.DeleteFunc(requested, func(name string) bool { return slices.Contains(before, name) })
	}
	if len(requested) == 0 || garden.DeletionTimestamp != nil {
		return nil, nil
	}
	extensions := &v1alpha1.ExtensionList{}
	if err := reader.List(ctx, extensions); err != nil {
		return nil, fmt.Errorf("list the Extensions that offer types: %w", err)
	}
	return decideExtensions(garden, requested, extensions.Items), nil
}

func typesOf(garden *v1alpha1.Garden) []string {
	var types []string
	for _, extension := range garden.Spec.Extensions {
		types = append(types, extension.Type)
	}
	return types
}

// decideExtensions returns an error for each requested type that no Extension offers to gardens.
func decideExtensions(garden *v1alpha1.Garden, requested []string, extensions []v1alpha1.Extension) field.ErrorList {
	offered := map[string]bool{}
	for i := range extensions {
		for _, resource := range extensions[i].Spec.Resources {
			if resource.Kind == corev1beta1.KindExtension && slices.Contains(resource.ClusterCompatibility, corev1beta1.ClusterTypeGarden) &&
				extensions[i].DeletionTimestamp == nil {
				offered[resource.Type] = true
			}
		}
	}
	var errs field.ErrorList
	for i, extension := range garden.Spec.Extensions {
		if slices.Contains(requested, extension.Type) && !offered[extension.Type] {
			errs = append(errs, field.Invalid(field.NewPath("spec", "extensions").Index(i).Child("type"), extension.Type,
				"no Extension offers this type to gardens: create one with a resource of kind Extension and clusterCompatibility garden first"))
		}
	}
	return errs
}

func refuse(garden *v1alpha1.Garden, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return admit.RefuseWith(apierrors.NewInvalid(v1alpha1.Kind("Garden"), garden.Name, errs).ErrStatus)
}
