// Package heartbeat renews the Lease by which gardenlet knows that an extension lives, and that the conditions that it reports are current.
package heartbeat

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// LeaseName is the name of the Lease in the namespace of the extension.
const LeaseName = "gardener-extension-heartbeat"

// DefaultPeriod is the time between two renewals.
const DefaultPeriod = 30 * time.Second

// Options of a heartbeat.
type Options struct {
	// Name of the extension, which holds the Lease.
	Name string
	// Namespace of the extension.
	Namespace string
	// Period is the time between two renewals; 0 for [DefaultPeriod].
	Period time.Duration
	// Clock; nil for that of the machine.
	Clock clock.Clock
}

// AddToManager has the leader renew the Lease.
func AddToManager(mgr manager.Manager, options Options) error { panic("not implemented yet") }
