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

// Set holds the ManagedResources that rest: at the last look they were in order, and every change that could matter is an event. It is
// safe for concurrent use.
type Set struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]string
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{versions: map[types.NamespacedName]string{}} }

// Add notes that a ManagedResource rests since it was looked at in the state of a resourceVersion.
func (s *Set) Add(name types.NamespacedName, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[name] = resourceVersion
}

// Remove notes that a ManagedResource does not rest, as it is being looked at or gone.
func (s *Set) Remove(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.versions, name)
}

// Disturbed returns the ManagedResources that rest, and have to be looked at all the same: all of them if events may be missing, and
// else those that are in another state than when they were looked at.
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

// Every calls look once in each period until the context ends.
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
