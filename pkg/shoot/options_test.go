package shoot

import (
	"testing"

	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"

	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// TestStateWorkers checks that controllers.shootState.concurrentSyncs sets the number of workers, and that 0 leaves the controller out:
// controller-runtime would start one worker instead.
func TestStateWorkers(t *testing.T) {
	for name, test := range map[string]struct {
		controllers *gardenletv1alpha1.ControllersConfiguration
		want        int
	}{
		"nothing":            {nil, 5},
		"no controller":      {&gardenletv1alpha1.ControllersConfiguration{}, 5},
		"a period only":      {states(nil), 5},
		"three":              {states(ptr.To(3)), 3},
		"zero, which is off": {states(ptr.To(0)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Config: &gardenletv1alpha1.GardenletConfiguration{Controllers: test.controllers}}
			if got := options.stateWorkers(); got != test.want {
				t.Errorf("%d workers, want %d", got, test.want)
			}
			if got := options.storesStates(); got != (test.want > 0) {
				t.Errorf("the controller runs: %t", got)
			}
		})
	}
}

func states(syncs *int) *gardenletv1alpha1.ControllersConfiguration {
	return &gardenletv1alpha1.ControllersConfiguration{
		ShootState: &gardenletv1alpha1.Periodic{Concurrency: gardenletv1alpha1.Concurrency{ConcurrentSyncs: syncs}},
	}
}

// TestShootLimits checks that shootClientConnection limits the requests to shoots.
func TestShootLimits(t *testing.T) {
	options := Options{Config: &gardenletv1alpha1.GardenletConfiguration{}}
	if qps, burst := options.shootLimits(); qps != shootQPS || burst != 0 {
		t.Errorf("without a configuration: %v and %d", qps, burst)
	}
	options.Config.ShootClientConnection = &gardenletv1alpha1.ShootClientConnection{
		ClientConnectionConfiguration: componentbaseconfigv1alpha1.ClientConnectionConfiguration{QPS: 7, Burst: 21},
	}
	if qps, burst := options.shootLimits(); qps != 7 || burst != 21 {
		t.Errorf("got %v and %d, want 7 and 21", qps, burst)
	}
}

// TestRecordTTL checks that gardenlet's configuration sets the time to live of DNS records, and that a change is rolled out like a new
// version of gardenlet.
func TestRecordTTL(t *testing.T) {
	in := rested()
	in.Config = &gardenletv1alpha1.GardenletConfiguration{}
	before, err := in.program()
	if err != nil || in.recordTTL() != 120 {
		t.Fatalf("the default is %d (%v), want 120", in.recordTTL(), err)
	}
	in.Config.Controllers = &gardenletv1alpha1.ControllersConfiguration{Shoot: &gardenletv1alpha1.ShootController{DNSEntryTTLSeconds: ptr.To[int64](30)}}
	after, err := in.program()
	if err != nil || in.recordTTL() != 30 || after == before {
		t.Errorf("got %d (%v), want 30, and another digest", in.recordTTL(), err)
	}
}
