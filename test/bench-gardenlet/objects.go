package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	seedName = "bench"
	project  = "dev"
	// namespace is that of the Project.
	namespace = constants.PrefixProjectNamespace + project
)

// gardenObjects are the objects that the garden has before gardenlet starts.
func gardenObjects() []client.Object {
	return []client.Object{
		// The labels allow the Project garden to use the namespace.
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace, Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleProject, constants.LabelProjectName: constants.GardenNamespace,
		}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gardener-system-public"}},
		secret("internal-domain"), secret("dns"), measure.CloudProfile(),
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To(constants.GardenNamespace)}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: project}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To(namespace)}},
	}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}
}

// registration returns the registration of the extension with its chart. Its Pod is simulated: Shoots without workers do not use it.
func registration() ([]client.Object, error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	packed, err := generate.Packed(filepath.Join(root, "charts", "provider-local"))
	if err != nil {
		return nil, err
	}
	chart, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return nil, fmt.Errorf("decode the chart of the extension: %w", err)
	}
	made := measure.Registration()
	made.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: made.Name}}}
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: made.Name}, Helm: &gardencorev1.HelmControllerDeployment{RawChart: chart}}
	return []client.Object{deployment, made}, nil
}

func shoot(i int) *corev1beta1.Shoot {
	made := measure.Shoot(namespace, fmt.Sprintf("s%04d", i))
	made.Spec.SeedName = ptr.To(seedName)
	return made
}

// createShoots creates the Shoots from one number up to another.
func (w *world) createShoots(ctx context.Context, from, to int) error {
	return measure.Each(ctx, from, to, func(ctx context.Context, i int) error {
		if err := w.garden.Create(ctx, shoot(i)); err != nil {
			return fmt.Errorf("create Shoot %d: %w", i, err)
		}
		return nil
	})
}
