// Package seed contains the flow of a Seed: the bundles that gardenlet emits into the seed cluster so that it can host
// control planes. [Plan] is the table of contents. See docs/seed.md.
package seed

import (
	"errors"
	"time"

	"k8s.io/utils/clock"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
)

// Options configure the flow's controllers.
type Options struct {
	// SeedName is the name of the Seed in the garden.
	SeedName string
	// Namespace of gardenlet in the seed: garden. The flow emits into this namespace.
	Namespace string
	// Config is the configuration of gardenlet, with defaults.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Identity of this gardenlet, for the status of the Seed.
	Identity *corev1beta1.Gardener
	Clock    clock.Clock
	// Version of this program.
	Version string
	// CertificateExpires returns the expiration time of gardenlet's client certificate for the garden, zero if it has
	// none. Nil means that the client does not use a certificate.
	CertificateExpires func() time.Time
	// Facts about the seed; nil to read them for these controllers alone.
	Facts *seedfacts.Reader
}

// validate returns an error if a required option is missing.
func (o Options) validate() error {
	if o.SeedName == "" || o.Namespace == "" || o.Config == nil || o.Identity == nil || o.Clock == nil {
		return errors.New("the flow of the Seed needs SeedName, Namespace, Config, Identity and Clock")
	}
	return nil
}
