package shootvalidator

import (
	"context"
	"errors"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// issuerManaged is the value of the annotation of Shoots whose issuer the garden publishes.
const issuerManaged = "managed"

// checkIssuer refuses to switch the managed issuer on or off: gardenlets do not publish its documents, and tokens that it issued must
// stay valid.
func checkIssuer(_ context.Context, c *change) error {
	switch was, is := c.old != nil && isManaged(c.old), isManaged(c.shoot); {
	case is && !was:
		return errors.New("metadata.annotations: this garden has no managed issuer for tokens of ServiceAccounts: remove the annotation " +
			"authentication.gardener.cloud/issuer=managed")
	case was && !is:
		return errors.New("metadata.annotations: the managed issuer cannot be switched off: keep the annotation authentication.gardener.cloud/issuer=managed")
	}
	return nil
}

func isManaged(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Annotations[constants.AnnotationAuthenticationIssuer] == issuerManaged
}
