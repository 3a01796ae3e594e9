package managedresource

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// impersonate has everything written in the name of the ServiceAccount that the ManagedResource asks for.
func (p *pass) impersonate(ctx context.Context) error {
	asked := p.mr.Spec.ServiceAccountName
	if asked == "" {
		return nil
	}
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
