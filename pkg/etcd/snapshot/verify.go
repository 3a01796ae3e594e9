package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Verified is the result of a verification.
type Verified struct {
	// Epochs are all epochs in the store.
	Epochs []VerifiedEpoch `json:"epochs"`
	// Complete is set if the latest chain and all other objects are undamaged, and no revision is missing.
	Complete bool `json:"complete"`
	// Problems describe damaged objects and missing revisions.
	Problems []string `json:"problems,omitempty"`
}

// VerifiedEpoch is an epoch with its snapshots.
type VerifiedEpoch struct {
	Epoch
	// Objects are the snapshots in the order of their names.
	Objects []Object `json:"objects"`
	// Last is the revision up to which the latest chain contains all changes; 0 without a full snapshot.
	Last int64 `json:"lastRevision"`
}

// Inspect describes the backups by the names of their objects. It does not read their contents.
func (s Store) Inspect(ctx context.Context) (Verified, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return Verified{}, err
	}
	objects, err := s.List(ctx)
	if err != nil {
		return Verified{}, err
	}
	result := Verified{}
	for _, epoch := range epochs {
		of := VerifiedEpoch{Epoch: epoch}
		for _, object := range objects {
			if object.Epoch == epoch.Number {
				of.Objects = append(of.Objects, object)
			}
		}
		chains := Chains(objects, epoch.Number)
		if len(chains) > 0 {
			of.Last = chains[0].Last
			if chains[0].Missing > 0 {
				result.Problems = append(result.Problems, fmt.Sprintf("epoch %d: the revision %d is missing", epoch.Number, chains[0].Missing))
			}
		} else {
			result.Problems = append(result.Problems, fmt.Sprintf("epoch %d has no full snapshot", epoch.Number))
		}
		result.Epochs = append(result.Epochs, of)
	}
	if len(epochs) == 0 {
		result.Problems = append(result.Problems, ErrNone.Error())
	}
	result.Complete = len(result.Problems) == 0
	return result, nil
}

// Verify reads all snapshots and checks that they are complete and undamaged. An error means that the store does not answer.
func (s Store) Verify(ctx context.Context) (Verified, error) {
	result, err := s.Inspect(ctx)
	if err != nil {
		return result, err
	}
	for _, epoch := range result.Epochs {
		for _, object := range epoch.Objects {
			err := s.Read(ctx, object, verifier(object))
			switch {
			case errors.Is(err, ErrCorrupt):
				result.Problems = append(result.Problems, err.Error())
			case err != nil:
				return result, err
			}
		}
	}
	result.Complete = len(result.Problems) == 0
	return result, nil
}

// verifier returns a function that reads the content of a snapshot, and checks the revisions of its changes.
func verifier(object Object) func(io.Reader) error {
	return func(content io.Reader) error {
		if object.IsFull() {
			_, err := io.Copy(io.Discard, content)
			return err
		}
		last := object.First - 1
		err := readDelta(content, func(event *mvccpb.Event) error {
			if revision := event.Kv.ModRevision; revision != last && revision != last+1 || revision < object.First {
				return fmt.Errorf("%w: the revision %d follows %d", ErrCorrupt, revision, last)
			}
			last = event.Kv.ModRevision
			return nil
		}, func(int64, int64) error { return nil })
		if err == nil && last != object.Last {
			err = fmt.Errorf("%w: it ends at the revision %d", ErrCorrupt, last)
		}
		return err
	}
}
