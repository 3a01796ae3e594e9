package extension

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/extension/health"
	"github.com/trellis-k8s/trellis/pkg/extension/heartbeat"
)

// AddToManager adds the controllers of the extension, which runs in a namespace.
func AddToManager(ctx context.Context, mgr manager.Manager, namespace, version string) error {
	deployer, err := bundles.NewDeployer(ctx, mgr, bundles.Options{Name: Name, Version: version})
	if err != nil {
		return err
	}
	actuator := bundles.NewActuator(deployer, Type, Plan)
	if err := extension.AddToManager(mgr, actuator, extension.Options{Type: Type, Sources: actuator.Sources()}); err != nil {
		return err
	}
	err = health.AddToManager(mgr, health.Options[*extensionsv1alpha1.Extension]{
		Type: Type, Sources: actuator.Sources(),
		Checks: []health.Check[*extensionsv1alpha1.Extension]{{
			Condition: health.SystemComponentsHealthy,
			Look:      health.ManagedResource[*extensionsv1alpha1.Extension](deployer.Reader(), bundleShoot),
		}},
	})
	if err != nil {
		return err
	}
	return heartbeat.AddToManager(mgr, heartbeat.Options{Name: Name, Namespace: namespace})
}
