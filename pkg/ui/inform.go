package ui

import (
	"context"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Informer reports changes of ManagedResources, and keeps them in its own cache.
type Informer interface {
	AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error
}

// FollowInformer follows the ManagedResources in a cache of the controllers until the context is canceled. It sends
// no requests, and
// keeps only rows, because the cache has everything else.
func (s *Server) FollowInformer(ctx context.Context, informer Informer) error {
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { s.store.inform(nil, managedResource(added)) },
		UpdateFunc: func(before, after any) { s.store.inform(managedResource(before), managedResource(after)) },
		DeleteFunc: func(gone any) { s.store.inform(managedResource(gone), nil) },
	})
	if err != nil {
		return err
	}
	if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		s.store.change(func() { s.store.loaded = true })
		<-ctx.Done()
	}
	return informer.RemoveEventHandler(registration)
}

// managedResource returns the ManagedResource of an informer's event. It returns nil if it is something else.
func managedResource(told any) *resourcesv1alpha1.ManagedResource {
	if gone, is := told.(toolscache.DeletedFinalStateUnknown); is {
		told = gone.Obj
	}
	mr, _ := told.(*resourcesv1alpha1.ManagedResource)
	return mr
}

// inform processes a change from one version of a ManagedResource to another. Either may be nil.
func (s *store) inform(before, after *resourcesv1alpha1.ManagedResource) {
	switch {
	case after == nil && before == nil:
		return
	case after == nil:
		s.change(func() { s.remove(recordOf(before).FullName()) })
		return
	case before != nil && before.ResourceVersion == after.ResourceVersion: // a resync of the cache
		return
	}
	var was *record
	now := recordOf(after)
	if before != nil {
		was = recordOf(before)
		if slices.EqualFunc(before.Status.Resources, after.Status.Resources, isSameEntry) {
			was.entries, now.entries = nil, nil
		}
	}
	s.change(func() {
		if s.loaded {
			s.history.add(differences(was, now, s.clock.Now()))
		}
		now.sequence, now.entries, now.conditions, now.cached = s.sequence, nil, nil, after
		s.records[now.FullName()] = now
	})
}

func isSameEntry(a, b resourcesv1alpha1.ObjectReference) bool {
	return a.Digest == b.Digest && a.Name == b.Name && a.Namespace == b.Namespace && a.Kind == b.Kind
}

// Loaded reports whether all ManagedResources were read once.
func (s *Server) Loaded() bool {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return s.store.loaded
}

// Namespaces returns the namespaces with ManagedResources, sorted, up to a maximum, and whether there are more.
func (s *Server) Namespaces(most int) (names []string, more bool) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	seen := map[string]bool{}
	for name := range s.store.records {
		if !seen[name.Namespace] {
			seen[name.Namespace] = true
			names = append(names, name.Namespace)
		}
	}
	slices.Sort(names)
	if len(names) > most {
		return names[:most], true
	}
	return names, false
}
