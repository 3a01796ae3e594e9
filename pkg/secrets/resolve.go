package secrets

import (
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
	// renewBefore is the minimum remaining validity at which a certificate is renewed.
	renewBefore = 10 * 24 * time.Hour
	// defaultRenewAfter is the default percentage of the validity after which a certificate is renewed.
	defaultRenewAfter = 80
	// labelLength is the maximum length of a label value.
	labelLength = 63
)

// stage is the position of a kind in the order of resolution: configs come after the ones that they depend on.
func (c Config) stage() int {
	switch c.Kind {
	case KindCA:
		return 0
	case KindKubeconfig:
		return 2
	}
	return 1
}

// Resolve computes the desired state of the Secrets. It is pure. configs must be complete, including those of held
// components, because Secrets without a config count as unused. The error lists all configs that are invalid,
// inconsistent, or whose Secret is lost.
func Resolve(configs []Config, state State) (Result, error) {
	r := newResolver(configs, state)
	var errs []error
	seen := map[string]bool{}
	for stage := range 3 {
		for _, config := range configs {
			if config.stage() != stage {
				continue
			}
			if seen[config.Name] {
				errs = append(errs, fmt.Errorf("secret %s is configured twice", config.Name))
				continue
			}
			seen[config.Name] = true
			err := config.validate()
			if err == nil {
				err = r.resolve(config)
			}
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	for _, secret := range state.Existing {
		if at := rotationOf(secret); at.After(r.result.LastRenewal) {
			r.result.LastRenewal = at
		}
		if !r.used[secret.Name] {
			r.result.Unused = append(r.result.Unused, secret)
		}
	}
	return r.result, nil
}

type resolver struct {
	state  State
	result Result
	kinds  map[string]Kind
	used   map[string]bool
	// known are the existing Secrets and the lost ones.
	known []Secret
	// lost are the names of saved Secrets that do not exist.
	lost map[string]bool
}

func newResolver(configs []Config, state State) *resolver {
	r := &resolver{
		state: state, result: Result{Items: map[string]Item{}}, kinds: map[string]Kind{}, used: map[string]bool{},
		known: slices.Clone(state.Existing), lost: map[string]bool{},
	}
	for _, config := range configs {
		r.kinds[config.Name] = config.Kind
	}
	for _, secret := range state.Saved {
		if secret.Labels[constants.LabelSecretsManagerIdentity] == state.Identity && r.find(secret.Name) == nil {
			r.known, r.lost[secret.Name] = append(r.known, secret), true
		}
	}
	return r
}

// use marks a Secret as used, and restores it if it is lost.
func (r *resolver) use(secret Secret) {
	if r.lost[secret.Name] && !r.used[secret.Name] {
		r.result.Restore = append(r.result.Restore, secret)
	}
	r.used[secret.Name] = true
}

func (r *resolver) resolve(config Config) error {
	request, ready, err := r.sources(config)
	if err != nil {
		return err
	}
	if !ready {
		r.keepAll(config.Name)
		return nil
	}
	labels, err := r.labels(request)
	if err != nil {
		return err
	}
	rotated := r.rotated(config, labels)
	if !rotated.IsZero() {
		labels[constants.LabelSecretsManagerLastRotationInitiationTime] = strconv.FormatInt(rotated.Unix(), 10)
	}
	current := r.current(config, labels, rotated)
	if current == nil {
		request.Secret = Secret{Name: nameOf(config, labels, rotated), Labels: labels}
		request.Rotated = rotated
		return r.request(request)
	}
	if err := r.matchesSaved(config, *current); err != nil {
		return err
	}
	r.use(*current)
	r.relabel(*current, labels)
	r.next(renewal(config, *current))
	return r.complete(config, *current)
}

// sources returns a request with the Secrets that the config depends on, and whether all of them exist.
func (r *resolver) sources(config Config) (request Request, ready bool, err error) {
	request, ready = Request{Config: config}, true
	item := func(name string, kind Kind, what string) Item {
		if r.kinds[name] != kind {
			err = errors.Join(err, fmt.Errorf("secret %s %s %q, which is not configured", config.Name, what, name))
		}
		found, known := r.result.Items[name]
		ready = ready && known
		return found
	}
	if config.isCertificate() {
		if authority := item(config.SignedBy, KindCA, "is signed by"); ready {
			request.Signer = r.signer(config, authority)
		}
	}
	if config.Trusts != "" {
		if authority := item(config.Trusts, KindCA, "trusts"); ready {
			request.Trusted = authority.Bundle.Data
		}
	}
	if config.TokensOf != "" {
		request.Tokens = item(config.TokensOf, KindStaticToken, "has a token of").Current.Data
	}
	return request, ready, err
}

// labels returns the labels of the Secret of a config, without the rotation label.
func (r *resolver) labels(request Request) (map[string]string, error) {
	config := request.Config
	var others []Material
	for _, other := range []Material{request.Trusted, request.Tokens} {
		if other != nil {
			others = append(others, other)
		}
	}
	checksum, err := config.checksum(others...)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		constants.LabelSecretsManagerName:             config.Name,
		constants.LabelSecretsManagerManagedBy:        managedBy,
		constants.LabelSecretsManagerIdentity:         r.state.Identity,
		constants.LabelSecretsManagerChecksumOfConfig: checksum,
	}
	if request.Signer != nil {
		labels[constants.LabelSecretsManagerChecksumOfSigningCA] = request.Signer.Data.checksum()[:labelLength]
	}
	if config.Persist {
		labels[constants.LabelSecretsManagerPersist] = "true"
	}
	if config.RenewAfter != 0 {
		labels[constants.LabelSecretsManagerRenewAfterValidityPercentage] = strconv.Itoa(config.RenewAfter)
	}
	return labels, nil
}

// request adds a request for a Secret. All Secrets of the config are kept until it exists.
func (r *resolver) request(request Request) error {
	config := request.Config
	r.keepAll(config.Name)
	var err error
	if request.Adopted, err = r.adopt(config); err != nil {
		return err
	}
	named := r.named(config.Name)
	if previous := newest(named); previous != nil && rotationOf(*previous).Equal(request.Rotated) {
		request.Previous = previous.Data
	}
	begins := len(named) > 0 && r.state.Rotations[config.Name].begins()
	if config.RestoreOnly && request.Adopted == nil && request.Previous == nil && !begins {
		return fmt.Errorf("secret %s is lost: a new one cannot replace it; restore it from the backup of the control plane's state",
			config.Name)
	}
	r.result.Missing = append(r.result.Missing, request)
	return nil
}

// matchesSaved returns an error if the data of an irreplaceable Secret differ from the saved ones.
func (r *resolver) matchesSaved(config Config, current Secret) error {
	for _, saved := range r.state.Saved {
		if config.RestoreOnly && saved.Name == current.Name && saved.Data.checksum() != current.Data.checksum() {
			return fmt.Errorf("secret %s was replaced: its data differ from those in the saved state of the control plane; "+
				"delete it to restore the saved one", current.Name)
		}
	}
	return nil
}

// complete adds the result for a config whose current Secret exists.
func (r *resolver) complete(config Config, current Secret) error {
	item := Item{Config: config, Current: current, Active: current, Old: r.old(config, current)}
	rotation := r.state.Rotations[config.Name]
	if config.RestoreOnly && config.KeepOld && rotation.keepsOld() && len(r.named(config.Name)) < 2 {
		return fmt.Errorf("the old secret %s of the rotation in phase %s is lost; restore it from the backup of the control plane's state",
			config.Name, rotation.Phase)
	}
	if err := r.unknownRotation(config, current); err != nil {
		return err
	}
	if item.Old != nil {
		r.use(*item.Old)
		if !rotation.Distributed {
			item.Active = *item.Old
		}
	}
	if config.hasBundle() {
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
	r.result.Items[config.Name] = item
	return nil
}

// unknownRotation returns an error if a rotation began after the last one that is known, and the old Secret still exists. This happens when
// the owner was restored from a backup. The known rotation is completed, so the old Secret would not be accepted any more, although clients
// may have no other one.
func (r *resolver) unknownRotation(config Config, current Secret) error {
	known, began := r.state.Rotations[config.Name], rotationOf(current)
	if !config.KeepOld || config.IgnoreOldAfter > 0 || !known.dropsOld() || known.Initiated.IsZero() || !began.After(known.Initiated) ||
		len(r.named(config.Name)) == 1 {
		return nil
	}
	return fmt.Errorf("secret %s: a rotation began at %s, but the last one that is known began at %s and is in phase %s; "+
		"if its owner was restored from a backup, see docs/garden-restore.md",
		config.Name, began.UTC().Format(time.RFC3339), known.Initiated.UTC().Format(time.RFC3339), known.Phase)
}

// signer returns the Secret of the authority that signs a certificate. Server certificates use the old authority until
// the rotation is being completed, because some clients might not trust the current one yet. Client certificates use
// the current one immediately, because servers get the bundle before.
func (r *resolver) signer(config Config, authority Item) *Secret {
	switch {
	case authority.Old == nil:
		return &authority.Current
	case config.isServer():
		if config.ByOther && r.state.Rotations[config.SignedBy].Distributed {
			return &authority.Current
		}
		return authority.Old
	case config.ByOther:
		return authority.Old
	}
	return &authority.Current
}

func nameOf(config Config, labels map[string]string, rotated time.Time) string {
	checksumOfConfig := labels[constants.LabelSecretsManagerChecksumOfConfig]
	return config.secretName(checksumOfConfig, labels[constants.LabelSecretsManagerChecksumOfSigningCA], rotated)
}

// current returns the Secret of a config for a rotation time; nil if there is none.
func (r *resolver) current(config Config, labels map[string]string, rotated time.Time) *Secret {
	if found := r.find(nameOf(config, labels, rotated)); found != nil || !config.retainedOnChange() {
		return found
	}
	return newest(slices.DeleteFunc(r.named(config.Name), func(secret Secret) bool { return !rotationOf(secret).Equal(rotated) }))
}

// rotated returns when the Secret of a config was last rotated or renewed, which may be now; zero if never.
func (r *resolver) rotated(config Config, labels map[string]string) time.Time {
	last := time.Time{}
	if initiated := r.state.Rotations[config.Name].Initiated; !initiated.IsZero() {
		last = time.Unix(initiated.Unix(), 0)
	}
	for _, secret := range r.named(config.Name) {
		if at := rotationOf(secret); at.After(last) {
			last = at
		}
	}
	current := r.current(config, labels, last)
	if current == nil {
		return last
	}
	if due := renewal(config, *current); !due.IsZero() && !r.state.Now.Before(due) {
		return time.Unix(r.state.Now.Unix(), 0)
	}
	return last
}

// relabel adds missing labels of a Secret to the result. Labels that describe its generation are kept.
func (r *resolver) relabel(secret Secret, wanted map[string]string) {
	labels := maps.Clone(secret.Labels)
	maps.Copy(labels, wanted)
	if checksum := secret.Labels[constants.LabelSecretsManagerChecksumOfConfig]; checksum != "" {
		labels[constants.LabelSecretsManagerChecksumOfConfig] = checksum
	}
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
