package resourcereferencemanager

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

func validateEntry(ctx context.Context, request *admission.Request, garden *admission.Garden, entry, old *gardencorev1beta1.BackupEntry) error {
	c, path := &check{ctx: ctx, request: request, garden: garden}, field.NewPath("spec")
	if old != nil && changed(entry.Spec.SeedName, old.Spec.SeedName) != "" {
		c.movesWithShoot(path.Child("seedName"), entry, old)
	}
	if entry.DeletionTimestamp != nil {
		return c.result()
	}
	if old == nil {
		old = &gardencorev1beta1.BackupEntry{}
	}
	if name := changed(entry.Spec.SeedName, old.Spec.SeedName); name != "" {
		known(c, path.Child("seedName"), garden.Seeds, "Seed", "", name)
	}
	if name := changed(&entry.Spec.BucketName, ptr.To(old.Spec.BucketName)); name != "" {
		known(c, path.Child("bucketName"), garden.BackupBuckets, "BackupBucket", "", name)
	}
	return c.result()
}

// movesWithShoot judges a change of the Seed of an entry that a Shoot owns. The gardenlet of the previous Seed writes it, and the gardenlet of the
// new Seed writes the credentials of the entry to the namespace that the name of the entry begins with. So both must be those of the Shoot, or a
// gardenlet could write into control planes of other Seeds. The Shoot is read live, because memory may not show its new Seed yet.
func (c *check) movesWithShoot(path *field.Path, entry, old *gardencorev1beta1.BackupEntry) {
	owner := metav1.GetControllerOf(old)
	if owner == nil || owner.Kind != "Shoot" {
		return
	}
	shoot := &gardencorev1beta1.Shoot{}
	found, err := c.garden.ReadLive(c.ctx, entry.Namespace, owner.Name, shoot)
	switch {
	case err != nil:
		c.fail(err)
	case !found:
	case ptr.Deref(entry.Spec.SeedName, "") != ptr.Deref(shoot.Spec.SeedName, ""):
		c.refuse(path, "the Seed of the Shoot %s/%s is %q: a BackupEntry moves only together with its Shoot", shoot.Namespace, shoot.Name, ptr.Deref(shoot.Spec.SeedName, ""))
	case shoot.Status.TechnicalID == "" || !strings.HasPrefix(strings.TrimPrefix(entry.Name, constants.PrefixSourceBackupEntry), shoot.Status.TechnicalID+"--"):
		c.refuse(path, "the name of a BackupEntry that moves must begin with the technical ID %q of its Shoot %s/%s", shoot.Status.TechnicalID, shoot.Namespace, shoot.Name)
	}
}
