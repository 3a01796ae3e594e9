package managedresource

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// impersonate makes the pass write as the ServiceAccount that the ManagedResource names.
func (p *pass) impersonate(ctx context.Context) error {
	asked := p.mr.Spec.ServiceAccountName
	serviceAccount := types.NamespacedName{Namespace: p.mr.Namespace, Name: asked}
	if namespace, name, found := strings.Cut(asked, "/"); found {
		serviceAccount = types.NamespacedName{Namespace: namespace, Name: name}
	}
	engine, err := p.Engine.As(ctx, serviceAccount)
	if err != nil {
		return fmt.Errorf("spec.serviceAccountName: %w", err)
	}
	p.engine = engine
	return nil
}
