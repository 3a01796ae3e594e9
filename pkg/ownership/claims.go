// Package ownership determines which ManagedResource owns an object: by the claims of several ManagedResources, the
// origin of live objects, the hand-over between inventories, and the state that compensates for outdated caches.
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

// Claims stores which ManagedResources want objects or have them in their inventory, so that two of them never create
// the same object at the same time, and none of them deletes an object that another one wants. Claims are ordered by
// time. It is safe for concurrent use.
//
// An owner *disowns* an object that is in its inventory but no longer in its manifests: others must not rely on its
// inventory then. Each owner disowns an object before it looks for successors. If two owners disown an object, each of
// them sees this, so that they never both leave the object to the other one.
type Claims struct {
	mu sync.Mutex
	// earliest contains the owner with the first claim for every object, later the other owners of the few objects that
	// have several.
	earliest map[claimedObject]claimant
	later    map[claimedObject][]claimant
	byOwner  map[claimant][]claimedObject
	disowned map[types.NamespacedName]map[object.Key]struct{}
}

// claimant is an owner in one word of memory. claimedObject is the key of an object in half of its memory. There are
// two of each for every object.
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

// NewClaims returns an empty store.
func NewClaims() *Claims {
	return &Claims{
		earliest: map[claimedObject]claimant{},
		later:    map[claimedObject][]claimant{},
		byOwner:  map[claimant][]claimedObject{},
		disowned: map[types.NamespacedName]map[object.Key]struct{}{},
	}
}

// Set replaces the claims of an owner. Existing claims keep their position. It returns the other owners of the objects
// that the owner no longer claims, which may take them over now.
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

// add adds the claim of an owner on an object. An existing claim keeps its position.
func (c *Claims) add(one claimedObject, owner claimant) {
	earliest, claimed := c.earliest[one]
	switch {
	case !claimed:
		c.earliest[one] = owner
	case earliest != owner && !slices.Contains(c.later[one], owner):
		c.later[one] = append(c.later[one], owner)
	}
}

// drop removes the claim of an owner on an object. If it was the first claim, the next one replaces it.
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

// First returns the owner with the first claim on the object.
func (c *Claims) First(key object.Key) (types.NamespacedName, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earliest, claimed := c.earliest[claimedObjectOf(key)]; claimed {
		return earliest.Value(), true
	}
	return types.NamespacedName{}, false
}

// Of returns the objects that an owner claims.
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

// Shared reports whether there are claims of other owners.
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

// Disown records that an owner no longer wants objects in its inventory. This ends with its claim, or when it calls
// Own.
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

// Own records that an owner may want all objects that it claims. The caller must be certain that the stored inventory
// contains the objects that were disowned before.
func (c *Claims) Own(owner types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.disowned, owner)
}

func (c *Claims) disowns(owner types.NamespacedName, key object.Key) bool {
	_, disowned := c.disowned[owner][key]
	return disowned
}
