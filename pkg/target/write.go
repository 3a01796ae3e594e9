package target

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Writer also creates and updates whole objects, for kinds that do not support server-side apply. Unknown fields are
// dropped.
type Writer struct{ *Objects }

// Create creates an object, and returns its metadata.
func (w Writer) Create(ctx context.Context, ref object.Ref, body []byte) (*metav1.PartialObjectMetadata, error) {
	mapping, err := w.Mapping(ref.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return written(ctx, w.rest.Post().AbsPath(collectionOf(mapping, ref)...).Body(body), ref)
}

// Replace updates an object if it still has the given resourceVersion, and returns its metadata.
func (w Writer) Replace(ctx context.Context, ref object.Ref, body []byte, resourceVersion string) (*metav1.PartialObjectMetadata, error) {
	mapping, err := w.Mapping(ref.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	request := w.rest.Put().AbsPath(append(collectionOf(mapping, ref), ref.Name)...)
	return written(ctx, request.Body(object.Require(body, "resourceVersion", resourceVersion)), ref)
}

func written(ctx context.Context, request *rest.Request, ref object.Ref) (*metav1.PartialObjectMetadata, error) {
	result := request.Param("fieldManager", resourcesv1alpha1.FieldManager).Param("fieldValidation", metav1.FieldValidationIgnore).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", metadataOnly).Do(ctx)
	if err := result.Error(); err != nil { // Raw does not decode it
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	meta := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, meta); err != nil {
		return nil, fmt.Errorf("decode the response to the write of %s: %w", ref, err)
	}
	return meta, nil
}
