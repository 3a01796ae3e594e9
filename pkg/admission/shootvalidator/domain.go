package shootvalidator

import (
	"context"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// checkDomain refuses a domain that another Shoot has, or that is above or below that of another Shoot: the records of one cluster
// would hide those of the other. It sees what this server knows; pkg/apiserver/domains also sees what others admit at the same moment.
func checkDomain(ctx context.Context, c *change) error {
	domain := domainOf(&c.shoot.Spec)
	if domain == "" || !differs(c, domainOf) {
		return nil
	}
	for _, key := range admission.RelatedDomains(domain) {
		shoots, err := c.garden.Shoots.By(ctx, admission.ShootsByDomain, key)
		if err != nil {
			return err
		}
		for _, other := range shoots {
			if other.Namespace != c.request.Namespace || other.Name != c.shoot.Name {
				return admission.DomainTaken(domain)
			}
		}
	}
	return nil
}

func domainOf(spec *gardencorev1beta1.ShootSpec) string {
	if spec.DNS == nil {
		return ""
	}
	return ptr.Deref(spec.DNS.Domain, "")
}
