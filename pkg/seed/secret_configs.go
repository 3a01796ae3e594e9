package seed

import (
	"context"
	"time"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// identity is the identity of the flow as a manager of Secrets.
	identity = "gardenlet"
	// authorityValidity is the validity of the seed's certificate authority. It is renewed before it expires.
	authorityValidity = 30 * 24 * time.Hour
	// oldAuthorityFor is how long the previous authority is trusted after the renewal.
	oldAuthorityFor = 24 * time.Hour
)

// secretConfigs returns the configs of all Secrets that the components of the Seed need, including components that are
// held.
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

// cleanUp deletes Secrets that no component uses any more.
func (p *pass) cleanUp(ctx context.Context) error {
	r, in, result := p.reconciler, p.in, p.Result
	if in.Deleting || r.unused == 0 || len(result.Written) > 0 {
		return nil
	}
	rules := r.emitter.Rules
	live, err := flow.ObserveUncached(ctx, r.uncached, in.Owner, result.Plan, in.Namespace)
	if err != nil {
		return err
	}
	unsettled, err := flow.Unsettled(in.Owner, result.Plan, live, rules)
	if err != nil || len(unsettled) > 0 {
		return err
	}
	referred, err := secrets.ReferredIn(ctx, r.uncached, in.Namespace, result.Plan.Objects())
	if err != nil {
		return err
	}
	return r.secrets.CleanUp(ctx, secrets.Wanted{Configs: in.secretConfigs()}, unsettled, referred)
}
