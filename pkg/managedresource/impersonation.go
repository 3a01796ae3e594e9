package managedresource

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// impersonate makes the pass write as the ServiceAccount of the ManagedResource.
func (p *pass) impersonate(ctx context.Context) error {
	reference := p.mr.Spec.ServiceAccountName
	serviceAccount := types.NamespacedName{Namespace: p.mr.Namespace, Name: reference}
	if namespace, name, found := strings.Cut(reference, "/"); found {
		serviceAccount = types.NamespacedName{Namespace: namespace, Name: name}
	}
	engine, err := p.Engine.As(ctx, serviceAccount)
	if err != nil {
		return fmt.Errorf("spec.serviceAccountName: %w", err)
	}
	p.engine = engine
	return nil
}
