package resourcesize

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/validate-resource-size"

// New returns the handler of defaulted limits. The reader must read from the garden without a cache.
func New(reader client.Reader, config v1alpha1.ResourceAdmissionConfiguration) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		limit := limitFor(config.Limits, &request.AdmissionRequest)
		if limit == nil || unrestricted(config.UnrestrictedSubjects, request.UserInfo) {
			return nil
		}
		why, err := tooLarge(limit, request.Object.Raw)
		if err == nil && why == "" && counted(limit, &request.AdmissionRequest) {
			why, err = tooMany(ctx, reader, *limit.Count, request)
		}
		switch {
		case err != nil:
			return err
		case why == "":
			return nil
		case *config.OperationMode == v1alpha1.ModeLog:
			log.FromContext(ctx).Info("An object exceeds a limit; it is admitted because operationMode is log",
				"resource", request.Resource.Resource, "object", subject(&request.AdmissionRequest), "user", request.UserInfo.Username, "reason", why)
			return nil
		}
		return admit.Refuse(http.StatusForbidden, "%s", why)
	})
}

// tooMany returns why no further object of a resource may be created, or an empty string.
func tooMany(ctx context.Context, reader client.Reader, count int64, request *admission.Request) (string, error) {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(schema.GroupVersionKind{
		Group: request.Kind.Group, Version: request.Kind.Version, Kind: request.Kind.Kind + "List",
	})
	// The first page shows how many there are in total, unless a selector is used.
	if err := reader.List(ctx, objects, client.Limit(1)); err != nil {
		return "", fmt.Errorf("count %s: %w", request.Resource.Resource, err)
	}
	total := int64(len(objects.Items))
	if objects.RemainingItemCount != nil {
		total += *objects.RemainingItemCount
	}
	if total < count {
		return "", nil
	}
	return fmt.Sprintf("there are %d %s, and at most %d are allowed: delete some, or ask an operator for a higher limit",
		total, request.Resource.Resource, count), nil
}
