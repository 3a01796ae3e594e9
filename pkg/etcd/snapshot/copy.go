package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"gocloud.dev/gcerrors"
)

// CopyOptions define which backups are copied.
type CopyOptions struct {
	// MaxFull is the number of full snapshots, the newest first, that are copied with the delta snapshots after them; 0 for all.
	MaxFull int
	// MaxAge is the age of snapshots that are copied; 0 for all. The newest full snapshot is always copied.
	MaxAge time.Duration
	// Final waits for a final snapshot, at most for the timeout if it is above 0.
	Final        bool
	FinalTimeout time.Duration
}

// Copied is the result of a copy.
type Copied struct {
	// Objects is the number of snapshots that were copied, Present the number of those that the target had already.
	Objects int `json:"objects"`
	Present int `json:"present"`
	// Final reports whether the last full snapshot is a final one.
	Final bool `json:"final"`
}

// finalInterval is the time between two looks for the final snapshot.
const finalInterval = 5 * time.Second

// Copy copies backups to another store. Each object is verified. Epochs are copied last, so that an incomplete copy is not used. A
// copy that was interrupted continues.
func (s Store) Copy(ctx context.Context, to Store, options CopyOptions, now time.Time) (Copied, error) {
	objects, final, err := s.waitForFinal(ctx, options)
	if err != nil {
		return Copied{}, err
	}
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return Copied{}, err
	}
	if len(epochs) == 0 {
		return Copied{}, ErrNone
	}
	result := Copied{Final: final}
	for _, object := range options.choose(objects, now) {
		present, err := to.has(ctx, object)
		if err == nil && !present {
			err = s.copyObject(ctx, to, object)
		}
		if err != nil {
			return result, err
		}
		result.Objects++
		if present {
			result.Present++
		}
	}
	for _, epoch := range epochs {
		if err := to.addEpoch(ctx, epoch); err != nil {
			return result, err
		}
	}
	return result, nil
}

// waitForFinal lists the snapshots, after the newest full one is a final one if the options require that.
func (s Store) waitForFinal(ctx context.Context, options CopyOptions) (objects []Object, final bool, err error) {
	var timeout <-chan time.Time
	if options.FinalTimeout > 0 {
		timer := time.NewTimer(options.FinalTimeout)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		if objects, err = s.List(ctx); err != nil {
			return nil, false, err
		}
		var newest Object
		for _, object := range objects {
			if object.IsFull() && object.Created.After(newest.Created) {
				newest = object
			}
		}
		if final = newest.Kind == KindFinal; final || !options.Final {
			return objects, final, nil
		}
		pause := time.NewTimer(finalInterval)
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-timeout:
			return objects, false, nil
		case <-pause.C:
		}
	}
}

// choose returns the snapshots to copy. It is pure.
func (o CopyOptions) choose(objects []Object, now time.Time) []Object {
	from := time.Time{}
	if o.MaxAge > 0 {
		from = now.Add(-o.MaxAge)
	}
	oldest := time.Time{} // of the full snapshots that the number allows
	limited := Policy{Limit: max(o.MaxFull, 1)}.fulls(objects, now)
	for _, object := range objects {
		if limited[object.Key] && (oldest.IsZero() || object.Created.Before(oldest)) {
			oldest = object.Created
		}
	}
	if o.MaxFull > 0 && oldest.After(from) {
		from = oldest
	}
	last := time.Time{}
	for key := range (Policy{Limit: 1}).fulls(objects, now) {
		object, _ := parseKey(key)
		last = object.Created
	}
	if last.Before(from) {
		from = last // the newest chain is always copied
	}
	var chosen []Object
	for _, object := range objects {
		if !object.Created.Before(from) {
			chosen = append(chosen, object)
		}
	}
	return chosen
}

// has reports whether the store has an object with the same size.
func (s Store) has(ctx context.Context, object Object) (bool, error) {
	attributes, err := s.Bucket.Attributes(ctx, object.Key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s in the target: %w", object.Key, err)
	}
	return attributes.Size == object.Size, nil
}

// copyObject copies an object as it is, and verifies it on the way.
func (s Store) copyObject(ctx context.Context, to Store, object Object) error {
	reader, err := s.Bucket.NewReader(ctx, object.Key, nil)
	if err != nil {
		return fmt.Errorf("read the backup %s: %w", object.Key, err)
	}
	defer func() { _ = reader.Close() }()
	return to.put(ctx, object.Key, false, func(w io.Writer) error {
		return decode(io.TeeReader(reader, w), func(_ Header, content io.Reader) error {
			_, err := io.Copy(io.Discard, content)
			return err
		})
	})
}

// addEpoch writes an epoch unless it exists. It returns ErrForeign if another one has its number.
func (s Store) addEpoch(ctx context.Context, epoch Epoch) error {
	content, err := json.Marshal(epoch)
	if err != nil {
		return fmt.Errorf("copy the epoch %d: %w", epoch.Number, err)
	}
	err = s.put(ctx, epochKey(epoch.Number), true, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err == nil || !exists(err) {
		return err
	}
	present, err := s.epoch(ctx, epochKey(epoch.Number))
	if err == nil && present.ID != epoch.ID {
		err = fmt.Errorf("%w: the target has another epoch %d", ErrForeign, epoch.Number)
	}
	return err
}
