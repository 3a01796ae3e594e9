// Package deletionprotection refuses to delete what extensions of Gardener live on, their CustomResourceDefinitions and custom
// resources, unless the object says that its deletion is meant.
//
// API servers send the object with each deletion, one by one for the deletion of a collection too, and that is all that is read
// then. For a review without an object, the metadata of those that it may mean are listed. Only names, labels, annotations and the
// deletion timestamp count.
package deletionprotection

import (
	"context"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/admit"
)

// Path is where gardener-resource-manager serves the webhook, of CustomResourceDefinitions and custom resources alike.
const Path = "/webhooks/validate-crd-deletion"

const (
	// pageSize is how many objects are listed at a time.
	pageSize = 500
	// listTimeout is how long all pages may take, less than API servers wait for the webhook.
	listTimeout = 8 * time.Second
)

// NewHandler returns the handler of deletions. The reader is one of the source cluster without a cache: what has just been
// confirmed, or has just lost its confirmation, must be seen.
func NewHandler(reader client.Reader) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		if request.Operation != admissionv1.Delete || request.SubResource != "" || !isProtected(request) {
			return nil
		}
		if len(request.OldObject.Raw) > 0 {
			return checkOldObject(request)
		}
		objects, err := list(ctx, reader, request)
		if err != nil {
			return admit.Unavailable("cannot read whether the deletion of %s is confirmed; try again: %w", request.Resource.Resource, err)
		}
		return refusal(request, unconfirmed(objects))
	})
}

// checkOldObject decides about the one object that comes with the request.
func checkOldObject(request *admission.Request) error {
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.OldObject.Raw, &object); err != nil {
		return admit.Refuse(http.StatusBadRequest, "the metadata of the %s to delete cannot be read", request.Kind.Kind)
	}
	return refusal(request, unconfirmed([]metav1.PartialObjectMetadata{object}))
}

// list returns the metadata of what a request without an object may delete: the object of its name, or all of its namespace.
func list(ctx context.Context, reader client.Reader, request *admission.Request) ([]metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	options := &client.ListOptions{Namespace: request.Namespace, Limit: pageSize}
	if request.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, request.Name)
	}
	if isDefinition(request) {
		options.LabelSelector = labels.SelectorFromSet(labels.Set{LabelDeletionProtected: "true"})
	}
	var objects []metav1.PartialObjectMetadata
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(schema.GroupVersionKind{
			Group: request.Kind.Group, Version: request.Kind.Version, Kind: request.Kind.Kind + "List",
		})
		switch err := reader.List(ctx, page, options); {
		case apierrors.IsNotFound(err):
			return objects, nil
		case err != nil:
			return nil, err
		}
		objects = append(objects, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return objects, nil
		}
	}
}
