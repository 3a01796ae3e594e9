package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	readConcurrency = 16
	readTimeout     = 30 * time.Second
)

// Reader reads the state of objects from the API server, past any cache.
type Reader struct {
	objects *target.Objects
	policy  fieldowner.Policy
}

// NewReader returns a reader of the given objects. The policy says whose fields are taken over.
func NewReader(objects *target.Objects, policy fieldowner.Policy) *Reader {
	return &Reader{objects: objects, policy: policy}
}

// Read returns the state of every object named in refs. It never fails as a whole: what could not be read is Unknown.
func (r *Reader) Read(ctx context.Context, refs []object.Ref) map[object.Key]State {
	states := make([]State, len(refs))
	var group errgroup.Group
	group.SetLimit(readConcurrency)
	for i, ref := range refs {
		group.Go(func() error {
			states[i] = r.read(ctx, ref)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error

	byKey := make(map[object.Key]State, len(refs))
	for i, ref := range refs {
		byKey[ref.Key()] = states[i]
	}
	return byKey
}

func (r *Reader) read(ctx context.Context, ref object.Ref) State {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()

	resource, err := r.objects.ResourceInAnyVersion(ref)
	if err == nil {
		var meta *metav1.PartialObjectMetadata
		if meta, err = resource.Get(ctx, ref.Name, metav1.GetOptions{}); err == nil {
			return State{Presence: Present, Observation: Observe(meta, r.policy)}
		}
		err = r.objects.Explain(ref, err)
	}
	switch {
	case errors.Is(err, target.ErrKindNotServed):
		return State{Presence: KindNotServed, Err: err}
	case apierrors.IsNotFound(err):
		return State{Presence: Absent}
	default:
		return State{Presence: Unknown, Err: fmt.Errorf("read %s: %w", ref, err)}
	}
}
