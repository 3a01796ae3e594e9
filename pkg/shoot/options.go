package shoot

import (
	"cmp"
	"errors"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// Options are the options of the controller of Shoots.
type Options struct {
	// SeedName is the name of the Seed in the garden.
	SeedName string
	// Namespace of gardenlet in the seed, usually garden.
	Namespace string
	// Config is gardenlet's configuration with defaults applied.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Identity of this gardenlet, which the status of Shoots contains.
	Identity *corev1beta1.Gardener
	Clock    clock.PassiveClock
	// Version of this program.
	Version string
	// Address returns the address of the API server of the control plane in a namespace. If it is nil, the address of its Service is used.
	Address func(namespace string) string
}

// validate returns an error if a required option is missing.
func (o Options) validate() error {
	if o.SeedName == "" || o.Namespace == "" || o.Config == nil || o.Identity == nil || o.Clock == nil {
		return errors.New("the flow of Shoots needs SeedName, Namespace, Config, Identity and Clock")
	}
	return nil
}

// statePeriod returns how often ShootStates are compared with the objects that they store: controllers.shootState.syncPeriod.
func (o Options) statePeriod() time.Duration {
	if controllers := o.Config.Controllers; controllers != nil && controllers.ShootState != nil && controllers.ShootState.SyncPeriod != nil {
		return controllers.ShootState.SyncPeriod.Duration
	}
	return defaultStatePeriod
}

// stateWorkers returns how many ShootStates are written concurrently: controllers.shootState.concurrentSyncs. With 0, the
// controller of the states of extensions does not run (Gardener).
func (o Options) stateWorkers() int {
	if controllers := o.Config.Controllers; controllers != nil && controllers.ShootState != nil {
		return ptr.Deref(controllers.ShootState.ConcurrentSyncs, defaultStateWorkers)
	}
	return defaultStateWorkers
}

// storesStates reports whether the controller of the states of extensions runs.
func (o Options) storesStates() bool { return o.stateWorkers() > 0 }

// shootLimits returns how many requests per second, and how many at once, are sent to the API server of a shoot: the fields qps
// and burst of shootClientConnection.
func (o Options) shootLimits() (qps float32, burst int) {
	connection := ptr.Deref(o.Config.ShootClientConnection, gardenletv1alpha1.ShootClientConnection{})
	return cmp.Or(connection.QPS, shootQPS), int(connection.Burst)
}

// Defaults of controllers.shootState.
const (
	defaultStatePeriod  = 6 * time.Hour
	defaultStateWorkers = 5
)
