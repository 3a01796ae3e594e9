package managedresource

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// claims remembers which ManagedResources want or hold which objects, so that two of them never create the same object
// at once, and none deletes what another one wants. The first claim comes first. It is safe for concurrent use.
//
// Who holds an object that is in none of its manifests any more *disowns* it: nobody may rely on its inventory then. Each of two that
// disown an object sees that the other one does, if it disowns before it looks, so that never both leave it to the other one.
type claims struct {
	mu       sync.Mutex
	byObject map[object.Key][]types.NamespacedName
	byOwner  map[types.NamespacedName][]object.Key
	disowned map[types.NamespacedName]map[object.Key]struct{}
}

func newClaims() *claims {
	return &claims{
		byObject: map[object.Key][]types.NamespacedName{},
		byOwner:  map[types.NamespacedName][]object.Key{},
		disowned: map[types.NamespacedName]map[object.Key]struct{}{},
	}
}

// set replaces what an owner claims. Claims that it had before keep their place. It returns who else claims what the owner
// does not claim any more, and may have it now.
func (c *claims) set(owner types.NamespacedName, keys []object.Key) (heirs []types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()

	kept, claimed := make(map[object.Key]struct{}, len(keys)), make([]object.Key, 0, len(keys))
	for _, key := range keys {
		if _, twice := kept[key]; twice {
			continue
		}
		kept[key] = struct{}{}
		claimed = append(claimed, key)
		if !slices.Contains(c.byObject[key], owner) {
			c.byObject[key] = append(c.byObject[key], owner)
		}
	}
	for _, key := range c.byOwner[owner] {
		if _, keep := kept[key]; !keep {
			heirs = append(heirs, c.drop(key, owner)...)
			delete(c.disowned[owner], key)
		}
	}
	delete(c.byOwner, owner)
	if len(claimed) > 0 {
		c.byOwner[owner] = claimed
	}
	if len(c.disowned[owner]) == 0 {
		delete(c.disowned, owner)
	}
	slices.SortFunc(heirs, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(heirs)
}

// drop takes an owner's claim on an object back, and returns who else claims it.
func (c *claims) drop(key object.Key, owner types.NamespacedName) []types.NamespacedName {
	owners := slices.DeleteFunc(c.byObject[key], func(o types.NamespacedName) bool { return o == owner })
	if len(owners) == 0 {
		delete(c.byObject, key)
		return nil
	}
	c.byObject[key] = owners
	return owners
}

// first returns the owner whose claim on the object came first.
func (c *claims) first(key object.Key) (types.NamespacedName, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owners := c.byObject[key]; len(owners) > 0 {
		return owners[0], true
	}
	return types.NamespacedName{}, false
}

// of returns what an owner claims.
func (c *claims) of(owner types.NamespacedName) []object.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.byOwner[owner])
}

// all returns the owners that claim the object.
func (c *claims) all(key object.Key) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.byObject[key])
}

// others returns the owners other than the given one that claim the object and do not disown it.
func (c *claims) others(key object.Key, owner types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.byObject[key]), func(o types.NamespacedName) bool { return o == owner || c.disowns(o, key) })
}

// sharing returns the owners other than the given one that claim any of the objects, each once.
func (c *claims) sharing(keys []object.Key, owner types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sharing []types.NamespacedName
	for _, key := range keys {
		for _, other := range c.byObject[key] {
			if other != owner && !slices.Contains(sharing, other) {
				sharing = append(sharing, other)
			}
		}
	}
	return sharing
}

// shared tells whether others than the given owner claim anything.
func (c *claims) shared(owner types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, claims := c.byOwner[owner]
	return len(c.byOwner) > 1 || len(c.byOwner) == 1 && !claims
}

// has tells whether the owner claims the object, and whether it disowns it.
func (c *claims) has(key object.Key, owner types.NamespacedName) (claims, disowns bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.byObject[key], owner), c.disowns(owner, key)
}

// disown notes that an owner holds objects that it does not want any more. That ends with its claim, or when it owns up to them.
func (c *claims) disown(owner types.NamespacedName, keys []object.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if c.disowned[owner] == nil {
			c.disowned[owner] = make(map[object.Key]struct{}, len(keys))
		}
		c.disowned[owner][key] = struct{}{}
	}
}

// own notes that an owner may want all that it claims. It has to know for certain that its inventory has what it disowned before.
func (c *claims) own(owner types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.disowned, owner)
}

func (c *claims) disowns(owner types.NamespacedName, key object.Key) bool {
	_, disowned := c.disowned[owner][key]
	return disowned
}
