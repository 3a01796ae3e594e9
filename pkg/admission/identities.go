package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// CheckIdentityType returns an error if a reference is to a WorkloadIdentity that does not exist or is for another
// infrastructure than the given type. It does not judge other references.
func (g *Garden) CheckIdentityType(ctx context.Context, reference *corev1.ObjectReference, provider string) error {
	if reference == nil || reference.Kind != "WorkloadIdentity" {
		return nil
	}
	identity, err := g.WorkloadIdentities.Get(ctx, reference.Namespace, reference.Name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the WorkloadIdentity %s/%s does not exist", reference.Namespace, reference.Name)
	}
	if err != nil {
		return err
	}
	if identity.Spec.TargetSystem.Type != provider {
		return fmt.Errorf("the WorkloadIdentity %s/%s is for the type %q, not %q", reference.Namespace, reference.Name, identity.Spec.TargetSystem.Type, provider)
	}
	return nil
}
