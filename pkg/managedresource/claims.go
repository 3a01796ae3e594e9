package managedresource

import (
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

// set replaces what an owner claims. Claims that it had before keep their place.
func (c *claims) set(owner types.NamespacedName, keys []object.Key) {
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
			c.drop(key, owner)
		}
	}
	if len(keys) == 0 {
		delete(c.byOwner, owner)
		return
	}
	c.byOwner[owner] = slices.Clone(keys)
}

func (c *claims) drop(key object.Key, owner types.NamespacedName) {
	owners := slices.DeleteFunc(c.byObject[key], func(o types.NamespacedName) bool { return o == owner })
	if len(owners) == 0 {
		delete(c.byObject, key)
		return
	}
	c.byObject[key] = owners
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
