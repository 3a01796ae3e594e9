// Package gardenletvpa has the VerticalPodAutoscaler of gardenlet, whose chart has none, since a new seed has no such kind yet.
package gardenletvpa

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Names of the autoscaler and of gardenlet's Deployment.
const (
	name       = "gardenlet-vpa"
	deployment = "gardenlet"
)

// Values are what the objects depend on.
type Values struct {
	// Namespace of gardenlet: garden.
	Namespace string
}

// Objects returns the objects of the component.
func Objects(values Values) ([]client.Object, error) {
	return []client.Object{
		parts.NewAutoscaler(values.Namespace, name, deployment, map[string]any{"containerName": "*", "controlledValues": "RequestsOnly"}),
	}, nil
}
