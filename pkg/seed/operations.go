package seed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// operate executes the operation that the Seed's annotation requests and removes the annotation. It is idempotent.
func (p *pass) operate(ctx context.Context) error {
	r, seed := p.reconciler, p.seed
	if seed.DeletionTimestamp != nil {
		return nil
	}
	operation := seed.Annotations[constants.AnnotationGardenerOperation]
	var err error
	switch operation {
	case constants.OperationRenewGardenAccessSecrets:
		err = r.renewTokens(ctx, resourcesv1alpha1.AnnotationTokenRenewTimestamp, client.MatchingLabels{
			resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor,
			resourcesv1alpha1.LabelClass:   resourcesv1alpha1.ClassGarden,
		})
	case constants.OperationRenewWorkloadIdentityTokens:
		err = r.renewTokens(ctx, constants.AnnotationWorkloadIdentityTokenRenewTimestamp, client.MatchingLabels{
			constants.LabelSecurityPurpose: "workload-identity-token-requestor",
		})
	case constants.OperationRenewKubeconfig:
		err = r.renewKubeconfig(ctx)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("operation %s: %w", operation, err)
	}
	return r.patch(ctx, seed, func() { delete(seed.Annotations, constants.AnnotationGardenerOperation) })
}

// renewTokens removes the renewal time from Secrets of the seed, so that their tokens are renewed immediately.
func (r *reconciler) renewTokens(ctx context.Context, annotation string, labels client.MatchingLabels) error {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.uncached.List(ctx, &list, labels); err != nil {
		return fmt.Errorf("list the Secrets: %w", err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if _, found := secret.Annotations[annotation]; !found {
			continue
		}
		before := client.MergeFrom(secret.DeepCopy())
		delete(secret.Annotations, annotation)
		if err := client.IgnoreNotFound(r.seed.Patch(ctx, secret, before, client.FieldOwner(fieldManager))); err != nil {
			return fmt.Errorf("update Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
	}
	return nil
}

// renewKubeconfig requests a new client certificate for gardenlet by annotating the Secret with its kubeconfig.
func (r *reconciler) renewKubeconfig(ctx context.Context) error {
	connection := r.options.Config.GardenClientConnection
	if connection == nil || connection.KubeconfigSecret == nil {
		return nil // gardenlet cannot renew a static kubeconfig
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secret.Namespace, secret.Name = connection.KubeconfigSecret.Namespace, connection.KubeconfigSecret.Name
	before := client.MergeFrom(secret.DeepCopy())
	secret.Annotations = map[string]string{constants.AnnotationGardenerOperation: constants.OperationRenew}
	if err := r.seed.Patch(ctx, secret, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("update Secret %s/%s with gardenlet's kubeconfig: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
