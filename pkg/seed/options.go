// Package seed is the flow of a Seed: what gardenlet emits into the seed cluster so that it can host control planes. [Plan] is its table of
// contents. See docs/seed.md.
package seed

import (
	"errors"
	"time"

	"k8s.io/utils/clock"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// Options are those of the flow's controllers.
type Options struct {
	// SeedName is the name of the Seed in the garden.
	SeedName string
	// Namespace of gardenlet in the seed: garden. What the flow emits lives there.
	Namespace string
	// Config is that of gardenlet, with its defaults.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Identity of this gardenlet, for the status of the Seed.
	Identity *corev1beta1.Gardener
	Clock    clock.Clock
	// Version of this program.
	Version string
	// CertificateExpires returns until when gardenlet's client certificate for the garden is valid; zero if it has none. Nil stands for a
	// client without a certificate.
	CertificateExpires func() time.Time
}

// validate returns what is missing.
func (o Options) validate() error {
	if o.SeedName == "" || o.Namespace == "" || o.Config == nil || o.Identity == nil || o.Clock == nil {
		return errors.New("the flow of the Seed needs SeedName, Namespace, Config, Identity and Clock")
	}
	return nil
}
