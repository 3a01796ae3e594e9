package shootvalidator

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// fewPlaces is the number of free places of a Seed below which its Shoots are counted live: memory can lag behind.
const fewPlaces = 5

func (c *change) seedNames() (now, before string) {
	if c.old != nil {
		before = ptr.Deref(c.old.Spec.SeedName, "")
	}
	return ptr.Deref(c.shoot.Spec.SeedName, ""), before
}

// checkSeedName checks who assigns a Shoot to a Seed, and how: new Shoots name a Seed only if their user may bind Shoots, and only the
// subresource shoots/binding changes the Seed of an existing one.
func checkSeedName(ctx context.Context, c *change) error {
	now, before := c.seedNames()
	switch {
	case c.old == nil:
		if now == "" {
			return nil
		}
		may, err := c.garden.May(ctx, c.request.User, "update", gardencorev1beta1.Resource("shoots"), subresourceBinding, c.request.Namespace, c.shoot.Name)
		if err != nil {
			return err
		}
		if !may {
			return errors.New("spec.seedName: you need the right to update shoots/binding to choose the Seed; leave it to the scheduler")
		}
		return nil
	case c.request.Subresource == "":
		if now != before {
			return errors.New("spec.seedName: only the subresource shoots/binding can change the Seed")
		}
		return nil
	case now == before:
		return fmt.Errorf("spec.seedName: the Shoot is on the Seed %q already", now)
	case before == "":
		return nil
	}
	moved := c.old.Spec.DeepCopy()
	moved.SeedName = c.shoot.Spec.SeedName
	if !equality.Semantic.DeepEqual(*moved, c.shoot.Spec) {
		return errors.New("spec: a Shoot that moves to another Seed cannot change otherwise at the same time")
	}
	return nil
}

// checkSeed checks that the Seed of a Shoot can host it, if the Seed changes or what the Shoot needs of it.
func checkSeed(ctx context.Context, c *change) error {
	now, before := c.seedNames()
	if now == "" || now == before && !differs(c, neededOfSeed) {
		return nil
	}
	seed, err := c.seed(ctx, now)
	if err != nil {
		return err
	}
	offer := &seedOffer{seed: seed, shoot: c.shoot, assigned: now != before, zonesChanged: differs(c, neededZones)}
	if !offer.assigned {
		return errors.Join(offer.refusals()...)
	}
	if offer.shoots, err = c.shootsOn(ctx, seed); err != nil {
		return err
	}
	profile, err := c.garden.ProfileOf(ctx, c.request.Namespace, &c.shoot.Spec)
	if err != nil {
		return err
	}
	offer.selector = profile.Spec.SeedSelector
	if before != "" {
		if offer.before, err = c.seed(ctx, before); err != nil {
			return err
		}
	}
	return errors.Join(offer.refusals()...)
}

// neededOfSeed returns the parts of a specification that a Seed must fit.
func neededOfSeed(spec *gardencorev1beta1.ShootSpec) []any {
	return []any{neededZones(spec), spec.Networking}
}

func neededZones(spec *gardencorev1beta1.ShootSpec) []any {
	return []any{survivesZone(spec), zonesOfControlPlane(spec)}
}

func (c *change) seed(ctx context.Context, name string) (*gardencorev1beta1.Seed, error) {
	seed, err := c.garden.Seeds.Get(ctx, "", name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("spec.seedName: the Seed %q does not exist", name)
	}
	return seed, err
}

// shootsOn returns the number of other Shoots on a Seed that limits it. The last places are counted live.
func (c *change) shootsOn(ctx context.Context, seed *gardencorev1beta1.Seed) (int64, error) {
	allocatable, limited := seed.Status.Allocatable[gardencorev1beta1.SeedResourceShoots]
	if !limited {
		return 0, nil
	}
	shoots, err := c.garden.Shoots.By(ctx, admission.ShootsBySeed, seed.Name)
	if err == nil && allocatable.Value()-int64(len(shoots)) <= fewPlaces {
		shoots, err = c.garden.Shoots.LiveBy(ctx, admission.ShootsBySeed, seed.Name)
	}
	if err != nil {
		return 0, err
	}
	count := int64(0)
	for _, shoot := range shoots {
		if shoot.Namespace != c.request.Namespace || shoot.Name != c.shoot.Name {
			count++
		}
	}
	return count, nil
}

// checkSeedSelector checks that the Seed of a Shoot still has the labels that a changed selector demands.
func checkSeedSelector(ctx context.Context, c *change) error {
	_, before := c.seedNames()
	if before == "" || !differs(c, func(spec *gardencorev1beta1.ShootSpec) *gardencorev1beta1.SeedSelector { return spec.SeedSelector }) {
		return nil
	}
	if c.shoot.Spec.SeedSelector == nil {
		return errors.New("spec.seedSelector: cannot be removed from a Shoot that is on a Seed")
	}
	seed, err := c.seed(ctx, before)
	if err != nil {
		return err
	}
	if why := notSelected(seed, c.shoot.Spec.SeedSelector); why != "" {
		return fmt.Errorf("spec.seedSelector: the Seed %q, which hosts the Shoot, %s", before, why)
	}
	return nil
}
