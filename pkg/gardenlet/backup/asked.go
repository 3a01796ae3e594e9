package backup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// memory has what was asked last, by owner: a cache may be behind, and asking again would interrupt the extension.
type memory struct {
	mu    sync.Mutex
	asked map[types.UID]Asked
}

// Remember keeps what was asked for an owner, when that is emitted.
func (s *Seed) Remember(owner flow.Owner, asked Asked) {
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	if s.asked.asked == nil {
		s.asked.asked = map[types.UID]Asked{}
	}
	s.asked.asked[owner.UID] = asked
}

// Forget frees the memory of an owner that is gone.
func (s *Seed) Forget(owner flow.Owner) {
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	delete(s.asked.asked, owner.UID)
}

// Applied reports whether the bundle with what was asked last is applied. A cache that shows an older revision does not count.
func (s *Seed) Applied(ctx context.Context, owner flow.Owner, key flow.Key, asked Asked) (bool, error) {
	shown, err := s.shown(ctx, owner, key)
	if err != nil || shown.Digest != asked.Digest || !shown.At.Equal(asked.At) {
		return false, err
	}
	var mr resourcesv1alpha1.ManagedResource
	if err := s.Emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &mr); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	return mr.Status.ObservedGeneration == mr.Generation && applied.Status == resourcesv1alpha1.ConditionTrue, nil
}

// Asked returns what was asked last: what is remembered, or what the bundle in the cache says if that is later.
func (s *Seed) Asked(ctx context.Context, owner flow.Owner, key flow.Key) (Asked, error) {
	shown, err := s.shown(ctx, owner, key)
	if err != nil {
		return Asked{}, err
	}
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	if remembered := s.asked.asked[owner.UID]; remembered.At.After(shown.At) {
		return remembered, nil
	}
	return shown, nil
}

// shown returns what the bundle in the cache says.
func (s *Seed) shown(ctx context.Context, owner flow.Owner, key flow.Key) (Asked, error) {
	var mr resourcesv1alpha1.ManagedResource
	err := s.Emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &mr)
	if err != nil {
		return Asked{}, client.IgnoreNotFound(err)
	}
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: &mr}}
	digest, _, err := live.Choice(owner, key, choiceDigest)
	at, known, errAt := live.Choice(owner, key, choiceAt)
	if err := errors.Join(err, errAt); err != nil || !known {
		return Asked{}, err
	}
	parsed, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return Asked{}, fmt.Errorf("read when an operation was asked for, from ManagedResource %s: %w", key, err)
	}
	return Asked{Digest: digest, At: parsed}, nil
}
