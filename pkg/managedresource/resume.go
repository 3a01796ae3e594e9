package managedresource

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// unfinishedFor is for how long manifests are kept between two looks: objects that are deleted mostly go in seconds.
const unfinishedFor = time.Minute

// suspendedManifests remembers the manifests of ManagedResources that are applied, except for objects of kinds that the API server is about to
// serve, while what left them is being deleted. That takes several looks, which need not read and decode the Secrets each time. It is safe for
// concurrent use.
type suspendedManifests struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]rendering
}

// rendering is what was made of the Secrets of a ManagedResource.
type rendering struct {
	// inputs tell what it was made from.
	inputs    string
	manifests []object.Manifest
	released  []object.Ref
	checksum  string
	secrets   []string
	made      time.Time
	// lateKinds are those of the pass.
	lateKinds map[schema.GroupKind]bool
}

func newSuspendedManifests() *suspendedManifests {
	return &suspendedManifests{byOwner: map[types.NamespacedName]rendering{}}
}

func (u *suspendedManifests) keep(owner types.NamespacedName, made rendering) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byOwner[owner] = made
}

// take returns what was kept, and forgets it.
func (u *suspendedManifests) take(owner types.NamespacedName) (rendering, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	made, known := u.byOwner[owner]
	delete(u.byOwner, owner)
	return made, known
}

// resume goes on with the manifests of the last pass, if nothing that they were made from has changed.
func (p *pass) resume(ctx context.Context) (bool, error) {
	made, known := p.suspended.take(p.self.Owner)
	if !known || p.Clock.Since(made.made) > unfinishedFor {
		return false, nil
	}
	p.resolveScopes(p.Objects.Mapping)
	versions, err := p.secretVersions(ctx)
	if err != nil {
		return false, err
	}
	inputs, err := p.inputs(ctx, versions, keysOfManifests(made.manifests))
	if err != nil || inputs != made.inputs {
		return false, err
	}
	var secrets []object.Ref
	for _, ref := range refsOf(made.manifests) {
		if manifest.IsSecret(ref.Key()) {
			secrets = append(secrets, ref)
		}
	}
	if p.takesOver(ctx, secrets) {
		return false, nil // it matters who else writes them
	}
	p.manifests, p.released, p.checksum, p.secrets, p.rendered = made.manifests, made.released, made.checksum, made.secrets, made.made
	maps.Copy(p.freshKinds, made.lateKinds)
	return true, nil
}

// suspend keeps the manifests for the next pass, if all that is left to do is to wait for deletions or late kinds.
func (p *pass) suspend(ctx context.Context, tally tally) error {
	if !p.onlyWaits(tally) || p.tokenTargets != nil || len(p.coerced) > 0 || !p.gate.open() {
		p.suspended.take(p.self.Owner)
		return nil
	}
	inputs, err := p.inputs(ctx, p.secrets, keysOfManifests(p.manifests))
	if err != nil {
		return err
	}
	p.suspended.keep(p.self.Owner, rendering{
		inputs: inputs, manifests: p.manifests, released: p.released, checksum: p.checksum, secrets: p.secrets, made: p.rendered,
		lateKinds: p.lateKinds,
	})
	return nil
}

// onlyWaits reports whether all that is left to do is to wait for deletions or late kinds.
func (p *pass) onlyWaits(tally tally) bool {
	otherwise := slices.ContainsFunc(tally.waiting, func(c change) bool { return !p.lateKinds[c.GroupKind()] })
	return p.operation == opApply && len(tally.pending)+len(tally.waiting) > 0 && !otherwise && len(tally.problems)+len(tally.failed) == 0
}

func keysOfManifests(manifests []object.Manifest) []object.Key {
	keys := make([]object.Key, 0, len(manifests))
	for _, manifest := range manifests {
		keys = append(keys, manifest.Key())
	}
	return keys
}
