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
type claims struct {
	mu       sync.Mutex
	byObject map[object.Key][]types.NamespacedName
	byOwner  map[types.NamespacedName][]object.Key
}

func newClaims() *claims {
	return &claims{
		byObject: map[object.Key][]types.NamespacedName{},
		byOwner:  map[types.NamespacedName][]object.Key{},
	}
}

// set replaces what an owner claims. Claims that it had before keep their place. It returns who else claims what the owner
// does not claim any more, and may have it now.
func (c *claims) set(owner types.NamespacedName, keys []object.Key) (heirs []types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()

	kept := make(map[object.Key]struct{}, len(keys))
	for _, key := range keys {
		kept[key] = struct{}{}
		if !slices.Contains(c.byObject[key], owner) {
			c.byObject[key] = append(c.byObject[key], owner)
		}
	}
	for _, key := range c.byOwner[owner] {
		if _, keep := kept[key]; !keep {
			heirs = append(heirs, c.drop(key, owner)...)
		}
	}
	delete(c.byOwner, owner)
	if len(keys) > 0 {
		c.byOwner[owner] = slices.Clone(keys)
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

// all returns the owners that claim the object.
func (c *claims) all(key object.Key) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.byObject[key])
}

// others returns the owners other than the given one that claim the object.
func (c *claims) others(key object.Key, owner types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.byObject[key]), func(o types.NamespacedName) bool { return o == owner })
}

// has tells whether the owner claims the object.
func (c *claims) has(key object.Key, owner types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.byObject[key], owner)
}
