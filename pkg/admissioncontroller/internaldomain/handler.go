// Package internaldomain protects the Secrets with the internal domain of the garden and of Seeds. The API servers of Shoots
// have names in this domain, so it must not change while there are Shoots.
package internaldomain

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/admission/validate-internal-domain"

const (
	gardenNamespace = "garden"
	prefixSeed      = "seed-"
)

// New returns the handler. The reader must read from the garden without a cache.
func New(reader client.Reader) admission.Handler {
	h := handler{reader: reader}
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		if request.SubResource != "" || request.Namespace != gardenNamespace && !strings.HasPrefix(request.Namespace, prefixSeed) {
			return nil
		}
		var before, after *corev1.Secret
		var err error
		if len(request.OldObject.Raw) > 0 {
			if before, err = admit.Decode[corev1.Secret](request, request.OldObject.Raw); err != nil {
				return err
			}
		}
		if request.Operation != admissionv1.Delete {
			if after, err = admit.Decode[corev1.Secret](request, request.Object.Raw); err != nil {
				return err
			}
		}
		return h.check(ctx, request, domainOf(before), domainOf(after))
	})
}

type handler struct{ reader client.Reader }

// domainOf returns the internal domain of a Secret, or an empty string if it has none.
func domainOf(secret *corev1.Secret) string {
	if secret == nil || secret.Labels[constants.LabelGardenRole] != constants.RoleInternalDomain {
		return ""
	}
	return secret.Annotations[constants.AnnotationDNSDomain]
}

// check decides about a change of the internal domain of a Secret. Empty domains are those of Secrets without the role.
func (h handler) check(ctx context.Context, request *admission.Request, before, after string) error {
	if request.Operation == admissionv1.Create {
		if err := h.checkOnly(ctx, request); err != nil {
			return err
		}
	}
	if after != before || request.Operation == admissionv1.Create {
		if problems := validation.IsDNS1123Subdomain(after); request.Operation != admissionv1.Delete && len(problems) > 0 {
			return admit.Refuse(http.StatusBadRequest, "annotation %s of Secret %s/%s: %q is not a domain: %s",
				constants.AnnotationDNSDomain, request.Namespace, request.Name, after, strings.Join(problems, "; "))
		}
	}
	if before == "" || after == before {
		return nil
	}
	shoot, err := h.shoot(ctx, request.Namespace)
	if err != nil || shoot == "" {
		return err
	}
	return admit.Refuse(http.StatusForbidden, "the internal domain %s of Secret %s/%s must not change while there are Shoots, such as %s: "+
		"their API servers have names in this domain", before, request.Namespace, request.Name, shoot)
}

// checkOnly rejects a second Secret with an internal domain in a namespace.
func (h handler) checkOnly(ctx context.Context, request *admission.Request) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	labels := client.MatchingLabels{constants.LabelGardenRole: constants.RoleInternalDomain}
	if err := h.reader.List(ctx, secrets, client.InNamespace(request.Namespace), labels, client.Limit(1)); err != nil {
		return fmt.Errorf("list the Secrets with an internal domain in namespace %s: %w", request.Namespace, err)
	}
	if len(secrets.Items) == 0 || secrets.Items[0].Name == request.Name {
		return nil
	}
	return admit.Refuse(http.StatusConflict, "namespace %s already has an internal domain, in Secret %s: change that one",
		request.Namespace, secrets.Items[0].Name)
}

// shoot returns a Shoot whose names are in the internal domain of a namespace, or an empty string.
func (h handler) shoot(ctx context.Context, namespace string) (string, error) {
	selectors := []fields.Selector{fields.Everything()}
	if seed, is := strings.CutPrefix(namespace, prefixSeed); is {
		selectors = []fields.Selector{
			fields.OneTermEqualSelector("spec.seedName", seed), fields.OneTermEqualSelector("status.seedName", seed),
		}
	}
	for _, selector := range selectors {
		shoots := &metav1.PartialObjectMetadataList{}
		shoots.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
		if err := h.reader.List(ctx, shoots, client.MatchingFieldsSelector{Selector: selector}, client.Limit(1)); err != nil {
			return "", fmt.Errorf("list the Shoots with the internal domain of namespace %s: %w", namespace, err)
		}
		if len(shoots.Items) > 0 {
			return shoots.Items[0].Namespace + "/" + shoots.Items[0].Name, nil
		}
	}
	return "", nil
}
