package secrets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	managedBy = "secrets-manager"
	// renewBefore is how long before its end a certificate is renewed at the latest.
	renewBefore = 10 * 24 * time.Hour
	// defaultRenewAfter is the share of the validity after which a certificate is renewed, in percent.
	defaultRenewAfter = 80
	// labelLength is how long the value of a label may be.
	labelLength = 63
)

// State is what a decision is made from.
type State struct {
	// Identity is that of the component that keeps the Secrets.
	Identity string
	// Existing are the Secrets with that identity.
	Existing []Secret
	// Adoptable are Secrets of others whose data are taken over, by the name of the config.
	Adoptable map[string][]Secret
	// Rotations by the name of the config.
	Rotations map[string]Rotation
	Now       time.Time
}

// Item is what there is for a config.
type Item struct {
	Config  Config
	Current Secret
	// Old is the Secret before the rotation; nil if there is none, or if it is not accepted any more.
	Old *Secret
	// Bundle has the certificates or keys of both, to trust them; nil for what has no bundle.
	Bundle *Secret
}

// Request is something that has to be generated.
type Request struct {
	Config Config
	// Secret is what is generated, without its data.
	Secret Secret
	// Signer is the authority of a certificate.
	Signer *Secret
	// Adopted are the data that are taken over instead; nil for none.
	Adopted Material
	// Rotated is the value that the name was made from.
	Rotated time.Time
}

// Result is what a decision found. It is complete if nothing is missing.
type Result struct {
	Items map[string]Item
	// Missing has to be generated, and then the decision to be made again: what is signed comes after who signs it.
	Missing []Request
	// Bundles have to be created. They need nothing to be generated.
	Bundles []Secret
	// Relabel are Secrets that have to get these labels.
	Relabel []Secret
	// Unused are the Secrets that the configs do not need. See [Deletable].
	Unused []Secret
	// Next is when a certificate has to be renewed, or an old one dropped; zero for never.
	Next time.Time
}

// Resolve decides what there has to be. It is pure. The configs have to be all that are needed, whatever waits for something: what is not
// asked for is not used. The error names all configs that contradict each other, or whose Secret is lost.
func Resolve(configs []Config, state State) (Result, error) {
	r := &resolver{state: state, result: Result{Items: map[string]Item{}}, used: map[string]bool{}}
	var errs []error
	seen := map[string]bool{}
	for _, authorities := range []bool{true, false} {
		for _, config := range configs {
			if (config.Kind == KindCA) != authorities {
				continue
			}
			if seen[config.Name] {
				errs = append(errs, fmt.Errorf("secret %s is asked for twice", config.Name))
				continue
			}
			seen[config.Name] = true
			if err := r.resolve(config); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	for _, secret := range state.Existing {
		if !r.used[secret.Name] {
			r.result.Unused = append(r.result.Unused, secret)
		}
	}
	return r.result, nil
}

type resolver struct {
	state  State
	result Result
	used   map[string]bool
}

func (r *resolver) resolve(config Config) error {
	signer, err := r.signer(config)
	if err != nil {
		return err
	}
	if signer == nil && config.isCertificate() {
		r.keepAll(config.Name) // until its authority has been generated
		return nil
	}
	secret := Secret{Labels: map[string]string{
		constants.LabelSecretsManagerName:      config.Name,
		constants.LabelSecretsManagerManagedBy: managedBy,
		constants.LabelSecretsManagerIdentity:  r.state.Identity,
	}}
	checksum, err := config.checksum()
	if err != nil {
		return err
	}
	secret.Labels[constants.LabelSecretsManagerChecksumOfConfig] = checksum
	checksumOfCA := ""
	if signer != nil {
		checksumOfCA = signer.Data.checksum()[:labelLength]
		secret.Labels[constants.LabelSecretsManagerChecksumOfSigningCA] = checksumOfCA
	}
	if config.Persist {
		secret.Labels[constants.LabelSecretsManagerPersist] = "true"
	}
	rotated := r.rotated(config, checksum, checksumOfCA)
	if !rotated.IsZero() {
		secret.Labels[constants.LabelSecretsManagerLastRotationInitiationTime] = strconv.FormatInt(rotated.Unix(), 10)
	}
	if config.RenewAfter != 0 {
		secret.Labels[constants.LabelSecretsManagerRenewAfterValidityPercentage] = strconv.Itoa(config.RenewAfter)
	}
	secret.Name = config.secretName(checksum, checksumOfCA, rotated)
	current := r.find(secret.Name)
	if current == nil {
		return r.request(Request{Config: config, Secret: secret, Signer: signer, Rotated: rotated})
	}
	r.used[current.Name] = true
	r.relabel(*current, secret.Labels)
	r.next(renewal(config, *current))
	return r.complete(Item{Config: config, Current: *current, Old: r.old(config, *current)})
}

// request asks for a Secret. All of that name are kept until it exists.
func (r *resolver) request(request Request) error {
	config := request.Config
	r.keepAll(config.Name)
	adoptable := r.state.Adoptable[config.Name]
	switch {
	case len(adoptable) > 1:
		return fmt.Errorf("the data of several Secrets are to be used for secret %s: %s and %s", config.Name, adoptable[0].Name, adoptable[1].Name)
	case len(adoptable) == 1:
		request.Adopted = adoptable[0].Data
	case config.RestoreOnly && len(r.named(config.Name)) == 0:
		return fmt.Errorf("secret %s is lost: a new one cannot replace it; restore it from the backup of the control plane's state", config.Name)
	}
	r.result.Missing = append(r.result.Missing, request)
	return nil
}

// complete adds the bundle to an item.
func (r *resolver) complete(item Item) error {
	if item.Old != nil {
		r.used[item.Old.Name] = true
	}
	if item.Config.hasBundle() {
		bundle, err := bundleOf(item, r.state.Identity)
		if err != nil {
			return err
		}
		if existing := r.find(bundle.Name); existing != nil {
			bundle = *existing
		} else {
			r.result.Bundles = append(r.result.Bundles, bundle)
		}
		r.used[bundle.Name] = true
		item.Bundle = &bundle
	}
	r.result.Items[item.Config.Name] = item
	return nil
}

// signer returns the authority that signs a certificate. Servers change to a new one when the rotation is being completed: until then
// some do not trust it yet. Clients change at once: servers get the bundle before them.
func (r *resolver) signer(config Config) (*Secret, error) {
	if !config.isCertificate() {
		return nil, nil
	}
	authority, known := r.result.Items[config.SignedBy]
	if !known {
		for _, missing := range r.result.Missing {
			if missing.Config.Name == config.SignedBy {
				return nil, nil
			}
		}
		return nil, fmt.Errorf("secret %s is signed by %q, which is not asked for", config.Name, config.SignedBy)
	}
	byOld := (config.Kind != KindClient) != config.ByOther
	if byOld && authority.Old != nil {
		return authority.Old, nil
	}
	return &authority.Current, nil
}

// rotated returns when the Secret of a config was rotated or renewed last, which may be now; zero if never.
func (r *resolver) rotated(config Config, checksum, checksumOfCA string) time.Time {
	last := r.state.Rotations[config.Name].Initiated.Truncate(time.Second)
	for _, secret := range r.named(config.Name) {
		if at := timeOf(secret, constants.LabelSecretsManagerLastRotationInitiationTime); at.After(last) {
			last = at
		}
	}
	current := r.find(config.secretName(checksum, checksumOfCA, last))
	if current == nil {
		return last
	}
	if due := renewal(config, *current); !due.IsZero() && !r.state.Now.Before(due) {
		return r.state.Now.Truncate(time.Second)
	}
	return last
}

// renewal returns when a Secret has to be renewed; zero for never.
func renewal(config Config, secret Secret) time.Time {
	issued, until := timeOf(secret, constants.LabelSecretsManagerIssuedAtTime), timeOf(secret, constants.LabelSecretsManagerValidUntilTime)
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

// old returns the Secret before the current one, if it is still accepted.
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
	var newest *Secret
	for _, secret := range r.named(config.Name) {
		if secret.Name != current.Name && (newest == nil || issued(secret).After(issued(*newest))) {
			newest = &secret
		}
	}
	return newest
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

// relabel asks for the labels that a Secret lacks. Those that describe its generation stay.
func (r *resolver) relabel(secret Secret, wanted map[string]string) {
	labels := maps.Clone(secret.Labels)
	maps.Copy(labels, wanted)
	if wanted[constants.LabelSecretsManagerPersist] == "" {
		delete(labels, constants.LabelSecretsManagerPersist)
	}
	if !maps.Equal(labels, secret.Labels) {
		r.result.Relabel = append(r.result.Relabel, Secret{Name: secret.Name, Labels: labels})
	}
}

func (r *resolver) next(at time.Time) {
	if at.After(r.state.Now) && (r.result.Next.IsZero() || at.Before(r.result.Next)) {
		r.result.Next = at
	}
}

func (r *resolver) find(name string) *Secret {
	for i := range r.state.Existing {
		if r.state.Existing[i].Name == name {
			return &r.state.Existing[i]
		}
	}
	return nil
}

// named returns the Secrets of a config, of all times.
func (r *resolver) named(name string) []Secret {
	return slices.DeleteFunc(slices.Clone(r.state.Existing), func(secret Secret) bool {
		return secret.Labels[constants.LabelSecretsManagerName] != name || secret.Labels[constants.LabelSecretsManagerBundleFor] != ""
	})
}

// keepAll has all Secrets of a config count as used, and its bundles.
func (r *resolver) keepAll(name string) {
	for _, secret := range r.state.Existing {
		if secret.Labels[constants.LabelSecretsManagerName] == name || secret.Labels[constants.LabelSecretsManagerBundleFor] == name {
			r.used[secret.Name] = true
		}
	}
}
