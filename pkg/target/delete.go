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

// Delete asks the API server to delete an object. It returns what is left of the object; nil if it is gone at once: then the API
// server answers with a status, or with the object as it was. An object whose deletion has only begun has a time of deletion.
func (o *Objects) Delete(ctx context.Context, ref object.Ref, options metav1.DeleteOptions) (left *metav1.PartialObjectMetadata, err error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	mapping, err := o.mappingInAnyVersion(ref.GroupVersionKind) //nolint:contextcheck // discovery has a time limit of its own
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
		return nil, fmt.Errorf("read the answer to the deletion of %s: %w", ref, err)
	}
	if left.DeletionTimestamp == nil {
		return nil, nil
	}
	return left, nil
}

// metadataOnly asks for the metadata of an object, so that nothing else leaves the API server.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// collectionOf returns the path of the collection that an object is, or would be, in.
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
