// Package deletionprotection rejects the deletion of the CustomResourceDefinitions and custom resources of Gardener's
// extensions, unless an annotation confirms it.
//
// API servers send the object with each deletion, also for each object of a deleted collection. The webhook reads only
// this object. For a review without an object, it lists the metadata of the objects in question. Only names, labels,
// annotations and the deletion timestamp matter.
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

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path at which gardener-resource-manager serves the webhook for CustomResourceDefinitions and custom
// resources.
const Path = "/webhooks/validate-crd-deletion"

const (
	// pageSize is the number of objects per list request.
	pageSize = 500
	// listTimeout limits the time for all pages. It is shorter than the webhook timeout of API servers.
	listTimeout = 8 * time.Second
)

// NewHandler returns the handler of deletions. The reader must read from the source cluster without a cache, so that the
// handler sees confirmations that were added or removed just before.
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

// checkOldObject checks the object that comes with the request.
func checkOldObject(request *admission.Request) error {
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.OldObject.Raw, &object); err != nil {
		return admit.Refuse(http.StatusBadRequest, "the metadata of the %s to delete cannot be read", request.Kind.Kind)
	}
	return refusal(request, unconfirmed([]metav1.PartialObjectMetadata{object}))
}

// list returns the metadata of the objects that a request without an object deletes: the named object, or all objects of
// the namespace.
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
