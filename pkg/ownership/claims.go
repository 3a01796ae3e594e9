// Package ownership decides which ManagedResource owns an object: claims of several ManagedResources, the origin of live objects,
// hand-over between inventories, and what a process has to remember so that caches which are behind do no harm.
package ownership

import (
	"cmp"
	"slices"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Claims remembers which ManagedResources want or hold which objects, so that two of them never create the same object
// at once, and none deletes what another one wants. The first claim comes first. It is safe for concurrent use.
//
// Who holds an object that is in none of its manifests any more *disowns* it: no one may rely on its inventory then. Each of two that
// disown an object sees that the other one does, if it disowns before it looks, so that never both leave it to the other one.
type Claims struct {
	mu sync.Mutex
	// earliest has the owner whose claim came first for every object, later the other owners of the few objects that have several.
	earliest map[claimedObject]claimant
	later    map[claimedObject][]claimant
	byOwner  map[claimant][]claimedObject
	disowned map[types.NamespacedName]map[object.Key]struct{}
}

// claimant is an owner in one word, and claimedObject an object's key in half of its memory: there are two for every object.
type (
	claimant      = unique.Handle[types.NamespacedName]
	claimedObject struct {
		kind      unique.Handle[schema.GroupKind]
		namespace unique.Handle[string]
		name      string
	}
)

func claimedObjectOf(key object.Key) claimedObject {
	return claimedObject{kind: unique.Make(key.GroupKind()), namespace: unique.Make(key.Namespace), name: key.Name}
}

func (o claimedObject) key() object.Key {
	gk := o.kind.Value()
	return object.Key{Group: gk.Group, Kind: gk.Kind, Namespace: o.namespace.Value(), Name: o.name}
}

// NewClaims returns claims without any owner.
func NewClaims() *Claims {
	return &Claims{
		earliest: map[claimedObject]claimant{},
		later:    map[claimedObject][]claimant{},
		byOwner:  map[claimant][]claimedObject{},
		disowned: map[types.NamespacedName]map[object.Key]struct{}{},
	}
}

// Set replaces what an owner claims. Claims that it had before keep their place. It returns who else claims what the owner
// does not claim any more, and may have it now.
func (c *Claims) Set(owner types.NamespacedName, keys []object.Key) (successors []types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()

	self := unique.Make(owner)
	kept, claimed := make(map[claimedObject]struct{}, len(keys)), make([]claimedObject, 0, len(keys))
	for _, key := range keys {
		one := claimedObjectOf(key)
		if _, twice := kept[one]; twice {
			continue
		}
		kept[one] = struct{}{}
		claimed = append(claimed, one)
		c.add(one, self)
	}
	for _, one := range c.byOwner[self] {
		if _, keep := kept[one]; !keep {
			c.drop(one, self)
			successors = append(successors, c.owners(one)...)
			delete(c.disowned[owner], one.key())
		}
	}
	delete(c.byOwner, self)
	if len(claimed) > 0 {
		c.byOwner[self] = claimed
	}
	if len(c.disowned[owner]) == 0 {
		delete(c.disowned, owner)
	}
	slices.SortFunc(successors, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(successors)
}

// add notes that an owner claims an object. A claim that it has already keeps its place.
func (c *Claims) add(one claimedObject, owner claimant) {
	earliest, claimed := c.earliest[one]
	switch {
	case !claimed:
		c.earliest[one] = owner
	case earliest != owner && !slices.Contains(c.later[one], owner):
		c.later[one] = append(c.later[one], owner)
	}
}

// drop takes an owner's claim on an object back. The next one takes its place.
func (c *Claims) drop(one claimedObject, owner claimant) {
	later := slices.DeleteFunc(c.later[one], func(other claimant) bool { return other == owner })
	if c.earliest[one] == owner {
		delete(c.earliest, one)
		if len(later) > 0 {
			c.earliest[one], later = later[0], later[1:]
		}
	}
	if len(later) == 0 {
		delete(c.later, one)
		return
	}
	c.later[one] = later
}

// owners returns the owners that claim an object, in the order of their claims.
func (c *Claims) owners(one claimedObject) []types.NamespacedName {
	earliest, claimed := c.earliest[one]
	if !claimed {
		return nil
	}
	owners := []types.NamespacedName{earliest.Value()}
	for _, owner := range c.later[one] {
		owners = append(owners, owner.Value())
	}
	return owners
}

// First returns the owner whose claim on the object came first.
func (c *Claims) First(key object.Key) (types.NamespacedName, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earliest, claimed := c.earliest[claimedObjectOf(key)]; claimed {
		return earliest.Value(), true
	}
	return types.NamespacedName{}, false
}

// Of returns what an owner claims.
func (c *Claims) Of(owner types.NamespacedName) []object.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	claimed := c.byOwner[unique.Make(owner)]
	keys := make([]object.Key, 0, len(claimed))
	for _, one := range claimed {
		keys = append(keys, one.key())
	}
	return keys
}

// All returns the owners that claim the object.
func (c *Claims) All(key object.Key) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners(claimedObjectOf(key))
}

// others returns the owners other than the given one that claim the object and do not disown it.
func (c *Claims) others(key object.Key, owner types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(c.owners(claimedObjectOf(key)), func(o types.NamespacedName) bool { return o == owner || c.disowns(o, key) })
}

// Sharing returns the owners other than the given one that claim any of the objects, each once.
func (c *Claims) Sharing(keys []object.Key, owner types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sharing []types.NamespacedName
	for _, key := range keys {
		for _, other := range c.owners(claimedObjectOf(key)) {
			if other != owner && !slices.Contains(sharing, other) {
				sharing = append(sharing, other)
			}
		}
	}
	return sharing
}

// Shared reports whether others than the given owner claim anything.
func (c *Claims) Shared(owner types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, claims := c.byOwner[unique.Make(owner)]
	return len(c.byOwner) > 1 || len(c.byOwner) == 1 && !claims
}

// has reports whether the owner claims the object, and whether it disowns it.
func (c *Claims) has(key object.Key, owner types.NamespacedName) (claims, disowns bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, self := claimedObjectOf(key), unique.Make(owner)
	return c.earliest[one] == self || slices.Contains(c.later[one], self), c.disowns(owner, key)
}

// Disown notes that an owner holds objects that it does not want any more. That ends with its claim, or when it owns up to them.
func (c *Claims) Disown(owner types.NamespacedName, keys []object.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if c.disowned[owner] == nil {
			c.disowned[owner] = make(map[object.Key]struct{}, len(keys))
		}
		c.disowned[owner][key] = struct{}{}
	}
}

// Own notes that an owner may want all that it claims. It has to know for certain that its inventory has what it disowned before.
func (c *Claims) Own(owner types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.disowned, owner)
}

func (c *Claims) disowns(owner types.NamespacedName, key object.Key) bool {
	_, disowned := c.disowned[owner][key]
	return disowned
}
