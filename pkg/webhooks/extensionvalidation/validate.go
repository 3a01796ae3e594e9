package extensionvalidation

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// maxErrors is the maximum number of errors in a response. Each error is small, but an object might have very many.
const maxErrors = 100

// rules are the validation rules of a kind, except for metadata. Objects are passed as JSON.
type rules struct {
	// check returns the errors of an object. The error is set if the JSON does not have the types of the API.
	check func(kind Kind, object []byte) (field.ErrorList, error)
	// compare returns an error for each forbidden change of an object.
	compare func(kind Kind, object, old []byte) field.ErrorList
}

// rulesOf converts functions over the spec of a kind to rules. The first argument of compare is the new spec.
func rulesOf[S any](check func(*object[S]) field.ErrorList, compare func(spec, old *S) field.ErrorList) rules {
	return rules{
		check: func(kind Kind, raw []byte) (field.ErrorList, error) {
			decoded, err := decode[object[S]](kind, raw)
			if err != nil {
				return nil, err
			}
			return check(decoded), nil
		},
		compare: func(kind Kind, raw, oldRaw []byte) field.ErrorList {
			decoded, err := decode[object[S]](kind, raw)
			old, oldErr := decode[object[S]](kind, oldRaw)
			if err != nil || oldErr != nil {
				// An object that was stored before the webhook existed might be malformed. It can be corrected, and there is nothing
				// to compare.
				return nil
			}
			return compare(&decoded.Spec, &old.Spec)
		},
	}
}

// compareNothing is for kinds without immutable fields.
func compareNothing[S any](_, _ *S) field.ErrorList { return nil }

// validate validates creations and updates of objects of the kind.
func (k Kind) validate(_ context.Context, request *admission.Request) error {
	if request.SubResource != "" {
		return nil
	}
	switch request.Operation {
	case admissionv1.Create:
		return k.validateCreation(request)
	case admissionv1.Update:
		return k.validateUpdate(request)
	default:
		return nil
	}
}

func (k Kind) validateCreation(request *admission.Request) error {
	object, err := decode[metav1.PartialObjectMetadata](k, request.Object.Raw)
	if err != nil {
		return err
	}
	errs, err := k.rules.check(k, request.Object.Raw)
	if err != nil {
		return err
	}
	return k.invalid(&object.ObjectMeta, append(k.checkMetadata(&object.ObjectMeta), errs...))
}

func (k Kind) validateUpdate(request *admission.Request) error {
	object, err := decode[anyObject](k, request.Object.Raw)
	if err != nil {
		return err
	}
	old, err := decode[anyObject](k, request.OldObject.Raw)
	if err != nil {
		return err
	}
	errs := apivalidation.ValidateObjectMetaUpdate(&object.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, k.checkMetadata(&object.ObjectMeta)...)
	changes, err := k.checkChanges(request, object, old)
	if err != nil {
		return err
	}
	return k.invalid(&object.ObjectMeta, append(errs, changes...))
}

// checkChanges returns the errors of a changed spec. It does not check an unchanged spec, because the object might be
// older than the webhook. It must remain possible to confirm the deletion of such an object and to remove its finalizers.
func (k Kind) checkChanges(request *admission.Request, object, old *anyObject) (field.ErrorList, error) {
	if equal(object.Spec, old.Spec, isNull) {
		return nil, nil
	}
	if object.DeletionTimestamp != nil {
		if equal(object.Spec, old.Spec, isEmpty) {
			return nil, nil
		}
		return field.ErrorList{field.Forbidden(specPath, "the object is being deleted, its spec cannot be changed")}, nil
	}
	errs, err := k.rules.check(k, request.Object.Raw)
	if err != nil {
		return nil, err
	}
	return append(k.rules.compare(k, request.Object.Raw, request.OldObject.Raw), errs...), nil
}

// checkMetadata validates the metadata of an object. The API server has already generated the name, if it is generated.
func (k Kind) checkMetadata(meta *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMeta(meta, k.Namespaced, apivalidation.NameIsDNSSubdomain, metadataPath)
}

// invalid returns the refusal with all errors, or nil if there are none.
func (k Kind) invalid(meta *metav1.ObjectMeta, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	if len(errs) > maxErrors {
		errs = append(errs[:maxErrors:maxErrors], field.Forbidden(specPath, "there are more errors, which are not listed"))
	}
	return admit.RefuseWith(apierrors.NewInvalid(k.GroupKind(), meta.Name, errs).Status())
}
