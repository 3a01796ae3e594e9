package shootvalidator

import (
	"context"
	"errors"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// checkIssuer admits the managed issuer only in a garden that has one, and without an issuer of the Shoot's own. It refuses to switch it off, because
// those who accept its tokens could not verify them any more.
func checkIssuer(ctx context.Context, c *change) error {
	was, is := c.old != nil && issuer.IsManaged(c.old.Annotations), issuer.IsManaged(c.shoot.Annotations)
	switch {
	case was && !is:
		return errors.New("metadata.annotations: the managed issuer cannot be switched off: keep the annotation authentication.gardener.cloud/issuer=managed")
	case !is:
		return nil
	}
	if server := c.shoot.Spec.Kubernetes.KubeAPIServer; server != nil && server.ServiceAccountConfig != nil && ptr.Deref(server.ServiceAccountConfig.Issuer, "") != "" {
		return errors.New("spec.kubernetes.kubeAPIServer.serviceAccountConfig.issuer: must not be set together with the annotation " +
			"authentication.gardener.cloud/issuer=managed: move it to acceptedIssuers, so that its tokens stay valid")
	}
	if was {
		return nil
	}
	hosts, err := c.garden.SecretsOfGarden(ctx, constants.LabelGardenRole, constants.RoleShootServiceAccountIssuer)
	if err == nil && len(hosts) == 0 {
		err = errors.New("metadata.annotations: this garden has no managed issuer for tokens of ServiceAccounts: remove the annotation " +
			"authentication.gardener.cloud/issuer=managed")
	}
	return err
}
