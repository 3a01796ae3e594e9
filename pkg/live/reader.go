package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	readConcurrency = 16
	readTimeout     = 30 * time.Second
)

// Reader reads the state of objects from the API server, without a cache.
type Reader struct {
	objects  *target.Objects
	policy   fieldowner.Policy
	examiner Examiner
}

// NewReader returns a reader of the given objects. The policy determines the managers whose fields are taken over. The
// examiner checks the health of objects. If it is nil, only metadata is read.
func NewReader(objects *target.Objects, policy fieldowner.Policy, examiner Examiner) *Reader {
	return &Reader{objects: objects, policy: policy, examiner: examiner}
}

// Read returns the state of every object in refs. There is no error for the whole read. The state of objects that could
// not be read is Unknown.
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

	observation, err := r.get(ctx, ref)
	if err == nil {
		return State{Presence: Present, Observation: observation}
	}
	err = r.objects.Explain(ref, err)
	switch {
	case errors.Is(err, target.ErrKindNotServed):
		return State{Presence: KindNotServed, Err: err}
	case apierrors.IsNotFound(err):
		return State{Presence: Absent}
	default:
		return State{Presence: Unknown, Err: fmt.Errorf("read %s: %w", ref, err)}
	}
}

func (r *Reader) get(ctx context.Context, ref object.Ref) (Observation, error) {
	examiner := examinerOf(r.examiner, ref.GroupKind())
	reading, err := r.objects.ReadingOf(ref, needsBody(r.examiner, ref.GroupKind()))
	if err != nil {
		return Observation{}, err
	}
	obj, err := reading.Get(ctx, ref.Name)
	if err != nil {
		return Observation{}, err
	}
	seen, err := observer{gk: ref.GroupKind(), policy: r.policy, examiner: examiner}.reduce(obj)
	if err != nil {
		return Observation{}, err
	}
	return *seen.observation, nil
}
