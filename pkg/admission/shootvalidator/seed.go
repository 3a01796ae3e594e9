package shootvalidator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cidr"
)

const (
	// zonesForFailures is the number of zones that a control plane needs to survive the failure of one.
	zonesForFailures = 3
	// anyProvider stands for all provider types in a selector.
	anyProvider = "*"
)

// seedOffer is a Seed and what a Shoot needs of it.
type seedOffer struct {
	seed  *gardencorev1beta1.Seed
	shoot *gardencorev1beta1.Shoot
	// assigned is set if the Shoot gets the Seed now, zonesChanged if it needs other zones than before.
	assigned, zonesChanged bool
	// before is the Seed that the Shoot leaves; nil if there is none.
	before *gardencorev1beta1.Seed
	// selector is the one of the CloudProfile.
	selector *gardencorev1beta1.SeedSelector
	// shoots is the number of other Shoots on the Seed, if the Seed limits it.
	shoots int64
}

// checksOfSeed are the rules for a Seed that a Shoot gets, in their order. Each returns why the Seed is refused, or nothing.
var checksOfSeed = []func(*seedOffer) string{
	(*seedOffer).deletion, (*seedOffer).taints, (*seedOffer).accessRestrictions, (*seedOffer).capacity, (*seedOffer).selected, (*seedOffer).backup,
	(*seedOffer).internalDomain, (*seedOffer).defaultDomain,
}

// refusals returns why the Seed cannot host the Shoot.
func (o *seedOffer) refusals() []error {
	var errs []error
	add := func(reason string) {
		if reason != "" {
			errs = append(errs, fmt.Errorf("the Seed %q cannot host the Shoot: it %s", o.seed.Name, reason))
		}
	}
	if o.assigned {
		for _, check := range checksOfSeed {
			add(check(o))
		}
	}
	if o.assigned || o.zonesChanged {
		add(o.zones())
	}
	if err := o.networks(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func (o *seedOffer) deletion() string {
	if o.seed.DeletionTimestamp != nil {
		return "is being deleted"
	}
	return ""
}

func (o *seedOffer) taints() string {
	for _, taint := range o.seed.Spec.Taints {
		if !slices.ContainsFunc(o.shoot.Spec.Tolerations, func(toleration gardencorev1beta1.Toleration) bool {
			return toleration.Key == taint.Key && (taint.Value == nil || toleration.Value != nil && *toleration.Value == *taint.Value)
		}) {
			return fmt.Sprintf("has the taint %q, which the Shoot does not tolerate", taint.Key)
		}
	}
	return ""
}

func (o *seedOffer) accessRestrictions() string {
	for _, wanted := range o.shoot.Spec.AccessRestrictions {
		if !slices.Contains(o.seed.Spec.AccessRestrictions, wanted.AccessRestriction) {
			return fmt.Sprintf("does not support the access restriction %q", wanted.Name)
		}
	}
	return ""
}

func (o *seedOffer) capacity() string {
	if allocatable, limited := o.seed.Status.Allocatable[gardencorev1beta1.SeedResourceShoots]; limited && o.shoots >= allocatable.Value() {
		return fmt.Sprintf("has %d Shoots, and takes %d", o.shoots, allocatable.Value())
	}
	return ""
}

func (o *seedOffer) selected() string {
	if o.selector == nil {
		return ""
	}
	if why := notSelected(o.seed, o.selector); why != "" {
		return why + " of the CloudProfile"
	}
	return ""
}

// notSelected returns why a selector does not select a Seed, or nothing.
func notSelected(seed *gardencorev1beta1.Seed, by *gardencorev1beta1.SeedSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(&by.LabelSelector)
	switch {
	case err != nil:
		return "cannot be compared with the seed selector, which is not valid: " + err.Error() + ","
	case !selector.Matches(labels.Set(seed.Labels)):
		return "does not have the labels of the seed selector"
	case len(by.ProviderTypes) > 0 && !slices.Contains(by.ProviderTypes, anyProvider) && !slices.Contains(by.ProviderTypes, seed.Spec.Provider.Type):
		return "does not have a provider type of the seed selector"
	}
	return ""
}

// backup, internalDomain and defaultDomain check what a Shoot needs to move between two Seeds.
func (o *seedOffer) backup() string {
	switch {
	case o.before == nil:
	case o.before.Spec.Backup == nil:
		return fmt.Sprintf("cannot take over the data, because the Seed %q has no backup", o.before.Name)
	case o.seed.Spec.Backup == nil:
		return "has no backup, through which the data could move"
	}
	return ""
}

func (o *seedOffer) internalDomain() string {
	domain := func(seed *gardencorev1beta1.Seed) string {
		if seed.Spec.DNS.Internal == nil {
			return ""
		}
		return seed.Spec.DNS.Internal.Domain
	}
	if o.before != nil && domain(o.before) != domain(o.seed) {
		return fmt.Sprintf("has the internal domain %q, but the Shoot uses %q", domain(o.seed), domain(o.before))
	}
	return ""
}

func (o *seedOffer) defaultDomain() string {
	domain := domainOf(&o.shoot.Spec)
	if o.before == nil || domain == "" || len(o.seed.Spec.DNS.Defaults) == 0 {
		return ""
	}
	below := func(one gardencorev1beta1.SeedDNSProviderConfig) bool {
		return strings.HasSuffix(domain, "."+one.Domain)
	}
	if slices.ContainsFunc(o.before.Spec.DNS.Defaults, below) && !slices.ContainsFunc(o.seed.Spec.DNS.Defaults, below) {
		return fmt.Sprintf("does not manage the default domain of %q", domain)
	}
	return ""
}

func survivesZone(spec *gardencorev1beta1.ShootSpec) bool {
	plane := spec.ControlPlane
	return plane != nil && plane.HighAvailability != nil && plane.HighAvailability.FailureTolerance.Type == gardencorev1beta1.FailureToleranceTypeZone
}

// zones checks that the Seed has the zones that the control plane needs.
func (o *seedOffer) zones() string {
	zones := o.seed.Spec.Provider.Zones
	if survivesZone(&o.shoot.Spec) && len(zones) < zonesForFailures {
		return fmt.Sprintf("has %d zones, but a control plane that survives the failure of a zone needs %d", len(zones), zonesForFailures)
	}
	for _, wanted := range zonesOfControlPlane(&o.shoot.Spec) {
		if !slices.Contains(zones, wanted) {
			return fmt.Sprintf("does not have the zone %q of spec.controlPlane.zones", wanted)
		}
	}
	return ""
}

// networks checks that a Shoot with nodes has ranges, and that they have no address in common with those of the Seed.
func (o *seedOffer) networks() error {
	networking := ptr.Deref(o.shoot.Spec.Networking, gardencorev1beta1.Networking{})
	if o.assigned && len(o.shoot.Spec.Provider.Workers) > 0 && (networking.Pods == nil || networking.Services == nil) {
		return errors.New("spec.networking: a Shoot on a Seed needs pods and services, and the Seed has no defaults for them")
	}
	ours, err := cidr.OfShoot(o.shoot)
	if err != nil {
		return err
	}
	theirs, err := cidr.OfSeed(o.seed)
	if err != nil {
		return err
	}
	if our, their, found := cidr.Overlap(ours, theirs); found {
		return fmt.Errorf("spec.networking: the %s %s overlap with the %s %s of the Seed %q", our.Use, our.Prefix, their.Use, their.Prefix, o.seed.Name)
	}
	return nil
}
