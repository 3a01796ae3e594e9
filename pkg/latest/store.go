// Package latest lets a controller read what it has just written, although the cache that it reads from does not show it
// yet. A decision on the state before the own write would repeat or undo it.
package latest

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is a pointer to an API type that can be copied.
type Object[T any] interface {
	client.Object
	DeepCopy() T
}

// Store remembers objects as the API server returned them after the last write. Its zero value is empty. It can be used by
// several workers.
type Store[T Object[T]] struct {
	mu      sync.Mutex
	written map[types.UID]T
}

// Newest returns the last written object if it is newer than the given one from a cache. Otherwise it returns the given one,
// and forgets the other.
func (s *Store[T]) Newest(cached T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	written, found := s.written[cached.GetUID()]
	if !found {
		s.forget(client.ObjectKeyFromObject(cached)) // an object that was deleted, and had this name
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	if err != nil || order > 0 || order == 0 && !isGone(written) {
		delete(s.written, cached.GetUID())
		return cached
	}
	return written.DeepCopy()
}

// isGone reports whether an object was deleted by the write that returned it. To the removal of the last finalizer, the API server answers
// with the object without it, but in its previous revision (k8s.io/apiserver, Store.deleteWithoutFinalizers), which a cache may still have.
func isGone(written client.Object) bool {
	return written.GetDeletionTimestamp() != nil && len(written.GetFinalizers()) == 0
}

// Remember stores an object as the API server returned it after a write.
func (s *Store[T]) Remember(object T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == nil {
		s.written = map[types.UID]T{}
	}
	s.written[object.GetUID()] = object.DeepCopy()
}

// Forget removes an object, for example because it was deleted.
func (s *Store[T]) Forget(key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(key)
}

func (s *Store[T]) forget(key client.ObjectKey) {
	for uid, object := range s.written {
		if client.ObjectKeyFromObject(object) == key {
			delete(s.written, uid)
		}
	}
}
