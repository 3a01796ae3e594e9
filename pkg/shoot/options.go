package shoot

import (
	"errors"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// Options are those of the flow's controller.
type Options struct {
	// SeedName is the name of the Seed in the garden.
	SeedName string
	// Namespace of gardenlet in the seed: garden.
	Namespace string
	// Config is that of gardenlet, with its defaults.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Identity of this gardenlet, for the status of Shoots.
	Identity *corev1beta1.Gardener
	Clock    clock.PassiveClock
	// Version of this program.
	Version string
	// Address returns the address of the API server of a control plane, by its namespace; nil for its Service.
	Address func(namespace string) string
}

// validate returns what is missing.
func (o Options) validate() error {
	if o.SeedName == "" || o.Namespace == "" || o.Config == nil || o.Identity == nil || o.Clock == nil {
		return errors.New("the flow of Shoots needs SeedName, Namespace, Config, Identity and Clock")
	}
	return nil
}

// controller returns the settings of the controller.
func (o Options) controller() gardenletv1alpha1.ShootController {
	controllers := ptr.Deref(o.Config.Controllers, gardenletv1alpha1.ControllersConfiguration{})
	return ptr.Deref(controllers.Shoot, gardenletv1alpha1.ShootController{})
}

// statePeriod returns after how long ShootStates are compared with what they store: controllers.shootState.syncPeriod.
func (o Options) statePeriod() time.Duration {
	if controllers := o.Config.Controllers; controllers != nil && controllers.ShootState != nil && controllers.ShootState.SyncPeriod != nil {
		return controllers.ShootState.SyncPeriod.Duration
	}
	return defaultStatePeriod
}

// stateWorkers returns how many ShootStates are written at a time: controllers.shootState.concurrentSyncs.
func (o Options) stateWorkers() *int {
	if controllers := o.Config.Controllers; controllers != nil && controllers.ShootState != nil {
		return controllers.ShootState.ConcurrentSyncs
	}
	return nil
}

// defaultStatePeriod is that of gardenlet's configuration.
const defaultStatePeriod = 6 * time.Hour
