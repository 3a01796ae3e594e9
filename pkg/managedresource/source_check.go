package managedresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unconfirmed is how long a ManagedResource that is being deleted is assumed to exist without reading it. Another one of its name can only be
// created after its finalizer was removed by hand, which takes longer.
const unconfirmed = 15 * time.Second

// errOutdated is the error of a deletion whose ManagedResource or Secret has changed since it was read.
var errOutdated = errors.New("the ManagedResource or one of its Secrets changed since this deletion was planned")

// deletionBegan returns when this process began to delete the objects of a ManagedResource that is being deleted: it may have waited for
// others that are deleted, too.
func (p *pass) deletionBegan(recorded inventory) time.Time {
	began := p.Clock.Now()
	for _, since := range p.pruneDelays.Update(p.self.Owner, slices.Collect(maps.Keys(recorded)), began) {
		if since.Before(began) {
			began = since
		}
	}
	return began
}

// compareWithSource makes sure, before something is deleted, that what the decision rests on is still so: caches may be behind, and a pass
// over many objects takes long. It looks past the caches. The error is errOutdated if something has changed, and another one if that could
// not be found out.
func (p *pass) compareWithSource(ctx context.Context, in input) error {
	if p.mr.DeletionTimestamp != nil {
		if p.Clock.Since(p.deletionBegan(in.recorded)) <= unconfirmed {
			return nil
		}
	}
	fresh := metadataOf(p.mr)
	if err := p.readFresh(ctx, fresh); err != nil {
		return err
	}
	if fresh.UID != p.mr.UID || fresh.Generation != p.mr.Generation || fresh.DeletionTimestamp.IsZero() != p.mr.DeletionTimestamp.IsZero() ||
		steeringChanged(p.mr.Annotations, fresh.Annotations) {
		return errOutdated
	}
	if p.operation != opApply {
		return nil
	}
	for i, reference := range p.mr.Spec.SecretRefs {
		secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.mr.Namespace, Name: reference.Name}}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := p.readFresh(ctx, secret); err != nil {
			return err
		}
		if secretVersion(secret) != in.secrets[i] {
			return errOutdated
		}
	}
	return nil
}

// readFresh reads the metadata of an object from the API server of the source cluster.
func (p *pass) readFresh(ctx context.Context, meta *metav1.PartialObjectMetadata) error {
	name := types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
	err := p.Direct.Get(ctx, name, meta)
	if apierrors.IsNotFound(err) {
		return errOutdated
	}
	if err != nil {
		return fmt.Errorf("check that %s %s has not changed before something is deleted: %w", meta.Kind, name, err)
	}
	return nil
}
