// Package example implements types of the kind Extension for tests of the life cycle of extensions. They deploy an object
// that has no effect.
package example

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

const (
	// TypeSeed deploys a ServiceAccount to the Shoot's namespace in the seed, before the API server of the Shoot exists.
	TypeSeed = "local-ext-seed"
	// TypeShoot deploys a ServiceAccount to the Shoot, after its API server exists.
	TypeShoot = "local-ext-shoot"
)

// Types returns all types of this package.
func Types() []string { return []string{TypeSeed, TypeShoot} }

// New returns the actuator of a type.
func New(deployer *bundles.Deployer, extensionType string) *bundles.Actuator[*extensionsv1alpha1.Extension] {
	return bundles.NewActuator(deployer, "extension-"+extensionType,
		func(_ context.Context, object *extensionsv1alpha1.Extension, _ *extension.Cluster) (flow.Plan, error) {
			return Plan(object), nil
		})
}

// Plan returns the bundle of an Extension. Neither type has a configuration.
func Plan(object *extensionsv1alpha1.Extension) flow.Plan {
	var bundle flow.Bundle
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: "extension-" + object.Spec.Type,
			Labels: map[string]string{"app.kubernetes.io/managed-by": local.Name},
		},
		AutomountServiceAccountToken: ptr.To(false),
	}
	if object.Spec.Type == TypeSeed {
		bundle = bundles.Seed(object.Namespace, "extension-"+object.Name)
	} else {
		bundle = bundles.Shoot(object.Namespace, "extension-"+object.Name)
		account.Namespace = metav1.NamespaceSystem
	}
	bundle.Objects = []client.Object{account}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}
}
