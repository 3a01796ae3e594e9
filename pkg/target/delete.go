package target

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Delete deletes an object. It returns the remaining object, or nil if the object was deleted immediately. In that
// case, the API server returns a status or the last state of the object. An object whose deletion has only started has
// a deletion timestamp.
func (o *Objects) Delete(ctx context.Context, ref object.Ref, options metav1.DeleteOptions,
) (left *metav1.PartialObjectMetadata, err error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	mapping, err := o.mappingInAnyVersion(ref.GroupVersionKind) //nolint:contextcheck // discovery has its own timeout
	if err != nil {
		return nil, err
	}
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encode the options of a deletion: %w", err)
	}
	request := o.rest.Delete().AbsPath(append(collectionOf(mapping, ref), ref.Name)...).SetHeader("Content-Type", runtime.ContentTypeJSON).
		SetHeader("Accept", metadataOnly).Body(body)
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	answer, err := result.Raw()
	if err != nil {
		return nil, err
	}
	left = &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(answer, left); err != nil {
		return nil, fmt.Errorf("decode the response to the deletion of %s: %w", ref, err)
	}
	if left.DeletionTimestamp == nil {
		return nil, nil
	}
	return left, nil
}

// metadataOnly requests only the metadata of an object, so that the API server does not return its other content.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// collectionOf returns the path of the collection of an object.
func collectionOf(mapping *meta.RESTMapping, ref object.Ref) []string {
	path := []string{"/apis", mapping.Resource.Group, mapping.Resource.Version}
	if mapping.Resource.Group == "" {
		path = []string{"/api", mapping.Resource.Version}
	}
	if mapping.Scope.Name() != meta.RESTScopeNameRoot {
		path = append(path, "namespaces", ref.Namespace)
	}
	return append(path, mapping.Resource.Resource)
}
