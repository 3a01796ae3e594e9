package target

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TryCreate asks the API server whether it would create an object, and creates nothing. The object's name may be taken: the
// API server validates an object before it looks whether there is one already (rest.BeforeCreate of k8s.io/apiserver), and
// AlreadyExists is not an error here. Validation decides about unknown fields: metav1.FieldValidationIgnore or
// metav1.FieldValidationStrict.
func (o *Objects) TryCreate(ctx context.Context, ref object.Ref, body []byte, validation string) error {
	mapping, err := o.Mapping(ref.GroupVersionKind)
	if err != nil {
		return err
	}
	var code int
	err = o.rest.Post().AbsPath(collectionOf(mapping, ref)...).
		Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", resourcesv1alpha1.FieldManager).
		Param("fieldValidation", validation).
		SetHeader("Content-Type", "application/json").
		SetHeader("Accept", metadataOnly).
		Body(body).Do(ctx).StatusCode(&code).Error()
	if code == http.StatusConflict {
		return nil
	}
	return err
}

// TryReplace asks the API server whether it would replace an object of the given version by the body, and changes nothing. Fields that it
// does not know are not an error.
func (o *Objects) TryReplace(ctx context.Context, ref object.Ref, body []byte, resourceVersion string) error {
	mapping, err := o.Mapping(ref.GroupVersionKind)
	if err != nil {
		return err
	}
	return o.discovery.RESTClient().Put().AbsPath(append(collectionOf(mapping, ref), ref.Name)...).
		Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", resourcesv1alpha1.FieldManager).
		Param("fieldValidation", metav1.FieldValidationIgnore).
		SetHeader("Content-Type", "application/json").
		SetHeader("Accept", metadataOnly).
		Body(object.Require(body, "resourceVersion", resourceVersion)).Do(ctx).Error()
}
