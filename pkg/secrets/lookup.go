package secrets

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// renewal returns when a Secret must be renewed; zero for never.
func renewal(config Config, secret Secret) time.Time {
	issued := timeOf(secret, constants.LabelSecretsManagerIssuedAtTime)
	until := timeOf(secret, constants.LabelSecretsManagerValidUntilTime)
	if issued.IsZero() || until.IsZero() || config.Kind == KindCA && !config.RenewAuthority {
		return time.Time{}
	}
	validity := until.Sub(issued)
	due := issued.Add(validity / 100 * time.Duration(cmp.Or(config.RenewAfter, defaultRenewAfter)))
	if latest := until.Add(-renewBefore); latest.Before(due) && validity > 2*renewBefore {
		return latest
	}
	return due
}

// old returns the previous Secret if it is still accepted.
func (r *resolver) old(config Config, current Secret) *Secret {
	if !config.KeepOld || r.state.Rotations[config.Name].dropsOld() {
		return nil
	}
	if config.IgnoreOldAfter > 0 {
		ignored := issued(current).Add(config.IgnoreOldAfter)
		if !r.state.Now.Before(ignored) {
			return nil
		}
		r.next(ignored)
	}
	old := newest(slices.DeleteFunc(r.named(config.Name), func(secret Secret) bool { return secret.Name == current.Name }))
	if old == nil {
		return nil
	}
	if until := timeOf(*old, constants.LabelSecretsManagerValidUntilTime); !until.IsZero() && !r.state.Now.Before(until) {
		return nil
	}
	return old
}

// newest returns the most recently generated Secret; nil if there is none. The time of the rotation takes precedence
// over the creation timestamp, which is that of the restore for a restored Secret.
func newest(secrets []Secret) *Secret {
	if len(secrets) == 0 {
		return nil
	}
	last := slices.MaxFunc(secrets, func(a, b Secret) int {
		return cmp.Or(rotationOf(a).Compare(rotationOf(b)), issued(a).Compare(issued(b)), strings.Compare(a.Name, b.Name))
	})
	return &last
}

// rotationOf returns when the rotation of a Secret was initiated; zero for a Secret from before the first rotation.
func rotationOf(secret Secret) time.Time {
	return timeOf(secret, constants.LabelSecretsManagerLastRotationInitiationTime)
}

func issued(secret Secret) time.Time {
	if at := timeOf(secret, constants.LabelSecretsManagerIssuedAtTime); !at.IsZero() {
		return at
	}
	return secret.Created
}

func timeOf(secret Secret, label string) time.Time {
	seconds, err := strconv.ParseInt(secret.Labels[label], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

func (r *resolver) find(name string) *Secret {
	for i := range r.known {
		if r.known[i].Name == name {
			return &r.known[i]
		}
	}
	return nil
}

// named returns the current and old Secrets of a config.
func (r *resolver) named(name string) []Secret {
	return slices.DeleteFunc(slices.Clone(r.known), func(secret Secret) bool {
		return secret.Labels[constants.LabelSecretsManagerName] != name || secret.Labels[constants.LabelSecretsManagerBundleFor] != ""
	})
}

// keepAll marks all Secrets of a config and its bundles as used.
func (r *resolver) keepAll(name string) {
	for _, secret := range r.state.Existing {
		if secret.Labels[constants.LabelSecretsManagerName] == name || secret.Labels[constants.LabelSecretsManagerBundleFor] == name {
			r.used[secret.Name] = true
		}
	}
}
