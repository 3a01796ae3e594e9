package gardenletrights

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// ofIssuers adds the documents of managed issuers. Their names have the Project and the UID of the Shoot, so that no gardenlet can publish keys for
// a Shoot of another Seed.
func ofIssuers(all seeds, world World) {
	for i := range world.Managed {
		shoot := &world.Managed[i]
		for j := range world.Projects {
			if ptr.Deref(world.Projects[j].Spec.Namespace, "") != shoot.Namespace || shoot.UID == "" {
				continue
			}
			for _, seed := range seedsOf(shoot.Spec.SeedName, shoot.Status.SeedName) {
				all.of(seed).add(publishIssuer, issuer.SecretName(world.Projects[j].Name, shoot.UID))
			}
		}
	}
}

// issuers reads the Shoots with the managed issuer, and the Projects.
func (r *reconciler) issuers(ctx context.Context, world *World) error {
	var shoots corev1beta1.ShootList
	var projects corev1beta1.ProjectList
	for _, list := range []client.ObjectList{&shoots, &projects} {
		if err := r.garden.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("read the Shoots and Projects with managed issuers: %w", err)
		}
	}
	for i := range shoots.Items {
		if issuer.IsManaged(shoots.Items[i].Annotations) {
			world.Managed = append(world.Managed, shoots.Items[i])
		}
	}
	world.Projects = projects.Items
	return nil
}
