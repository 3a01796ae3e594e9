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

// memory contains the last request to an extension, by owner. The cache may be outdated, and a repeated request would
// interrupt the extension.
type memory struct {
	mu    sync.Mutex
	asked map[types.UID]Asked
}

// Remember stores the last request of an owner. Call it when the request is emitted.
func (s *Seed) Remember(owner flow.Owner, asked Asked) {
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	if s.asked.asked == nil {
		s.asked.asked = map[types.UID]Asked{}
	}
	s.asked.asked[owner.UID] = asked
}

// Forget removes a deleted owner from memory.
func (s *Seed) Forget(owner flow.Owner) {
	s.Objects.Release(UserOf(owner))
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	delete(s.asked.asked, owner.UID)
}

// Applied reports whether the bundle with the given request is applied. It returns false if the cache contains an older revision.
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

// Asked returns the last request: from memory, or from the bundle in the cache if that is later.
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

// shown returns the request in the cached bundle.
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
		return Asked{}, fmt.Errorf("read the time of the last request from ManagedResource %s: %w", key, err)
	}
	return Asked{Digest: digest, At: parsed}, nil
}
