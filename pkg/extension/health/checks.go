package health

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

// ManagedResource returns a check of a ManagedResource in the namespace of the object.
func ManagedResource[T extensionsv1alpha1.Object](reader client.Reader, name string) LookFunc[T] {
	return func(ctx context.Context, object T, _ *extension.Cluster) (Finding, error) {
		key := client.ObjectKey{Namespace: object.GetNamespace(), Name: name}
		var mr resourcesv1alpha1.ManagedResource
		err := reader.Get(ctx, key, &mr)
		if apierrors.IsNotFound(err) {
			return Unhealthy(fmt.Sprintf("ManagedResource %s does not exist.", key)), nil
		}
		if err != nil {
			return Finding{}, fmt.Errorf("read ManagedResource %s: %w", key, err)
		}
		return ofManagedResource(&mr), nil
	}
}

// ofManagedResource returns a finding from the conditions of a ManagedResource.
func ofManagedResource(mr *resourcesv1alpha1.ManagedResource) Finding {
	name := client.ObjectKeyFromObject(mr)
	if mr.Status.ObservedGeneration != mr.Generation {
		return Progressing(fmt.Sprintf("ManagedResource %s has not been observed yet.", name))
	}
	for _, of := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
		condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, of)
		text := fmt.Sprintf("ManagedResource %s: %s", name, cmp.Or(condition.Message, condition.Reason, string(of)+" is not known."))
		switch condition.Status {
		case resourcesv1alpha1.ConditionTrue:
		case resourcesv1alpha1.ConditionFalse:
			codes := make([]corev1beta1.ErrorCode, 0, len(condition.Codes))
			for _, code := range condition.Codes {
				codes = append(codes, corev1beta1.ErrorCode(code))
			}
			return Unhealthy(text, codes...)
		default:
			return Progressing(text)
		}
	}
	condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	if condition.Status == resourcesv1alpha1.ConditionTrue {
		return Progressing(fmt.Sprintf("ManagedResource %s: %s", name, cmp.Or(condition.Message, condition.Reason)))
	}
	return Healthy()
}
