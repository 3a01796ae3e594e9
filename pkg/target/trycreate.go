package target

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TryCreate performs a dry-run creation of an object. An existing object with the same name is not an error: the API
// server validates an object before it checks whether the object exists (rest.BeforeCreate of k8s.io/apiserver), and
// TryCreate ignores AlreadyExists. Validation determines how unknown fields are handled: metav1.FieldValidationIgnore
// or metav1.FieldValidationStrict.
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

// TryReplace performs a dry-run replacement of an object with the given resourceVersion by the body. Unknown fields are
// not an error.
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
