// Package resting lets a controller skip ManagedResources that cannot have changed without an event.
package resting

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Set holds the resting ManagedResources: their last reconcile left nothing to do, and every relevant change is an
// event. It is safe for concurrent use.
type Set struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]string
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{versions: map[types.NamespacedName]string{}} }

// Add records that a ManagedResource rests since the reconcile of the given resourceVersion.
func (s *Set) Add(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[name] = resourceVersion
}

// Remove records that a ManagedResource does not rest, because it is being reconciled or no longer exists.
func (s *Set) Remove(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.versions, name)
}

// Disturbed returns the resting ManagedResources that must be reconciled: all of them if events may be missing,
// otherwise those whose resourceVersion changed since their last reconcile.
func (s *Set) Disturbed(ctx context.Context, cached client.Reader, eventsMissing bool) ([]types.NamespacedName, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedResources: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var disturbed []types.NamespacedName
	for i := range list.Items {
		name := client.ObjectKeyFromObject(&list.Items[i])
		if version, rests := s.versions[name]; rests && (eventsMissing || version != list.Items[i].ResourceVersion) {
			disturbed = append(disturbed, name)
		}
	}
	return disturbed, nil
}

// Every calls look once per period until the context ends.
func Every(ctx context.Context, clk clock.Clock, period time.Duration, look func(context.Context)) {
	for {
		select {
		case <-clk.After(period):
			look(ctx)
		case <-ctx.Done():
			return
		}
	}
}
