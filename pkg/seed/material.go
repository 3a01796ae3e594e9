package seed

import (
	"time"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// identity is that of the flow as the keeper of Secrets.
	identity = "gardenlet"
	// authorityValidity is how long the authority of the seed is valid. It is renewed before.
	authorityValidity = 30 * 24 * time.Hour
	// oldAuthorityFor is how long the authority before it is trusted after that.
	oldAuthorityFor = 24 * time.Hour
)

// secretConfigs returns all Secrets that the components of the Seed need, whatever they wait for.
func (in Inputs) secretConfigs() []secrets.Config {
	configs := []secrets.Config{{
		Name: constants.SecretNameCASeed, Kind: secrets.KindCA, CommonName: "kubernetes", Validity: authorityValidity,
		KeepOld: true, IgnoreOldAfter: oldAuthorityFor, RenewAuthority: true,
	}}
	if !in.operatorRuns() {
		configs = append(configs, resourcemanager.Secrets(resourcemanager.Values{Namespace: in.Namespace}, constants.SecretNameCASeed)...)
	}
	if in.withoutAutoscaler() == "" {
		configs = append(configs, vpa.Secrets(vpa.Values{Namespace: in.Namespace}, constants.SecretNameCASeed)...)
	}
	return configs
}
