// Package gardenletvpa contains the VerticalPodAutoscaler of gardenlet. It is not part of gardenlet's chart, because a
// new seed does not define the kind yet.
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

// Values are the inputs of the component.
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
