package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Epoch is the part of the backups that one history of the cluster has written. A cluster that is restored, or formed in place
// of a lost one, has a new identifier and begins a new epoch. The members of earlier clusters may then not write any more.
type Epoch struct {
	// Number of the epoch, from 1.
	Number int `json:"number"`
	// ID distinguishes epochs with the same number that were claimed at the same time.
	ID string `json:"id"`
	// Cluster is the identifier of the etcd cluster, as etcd prints it.
	Cluster string `json:"cluster"`
	// Follows is the number of the epoch that the cluster continues or replaces; 0 for the first one.
	Follows int       `json:"follows"`
	Created time.Time `json:"created"`
}

// ErrSuperseded means that another cluster has begun a later epoch, so that this one must not write backups.
var ErrSuperseded = errors.New("another cluster writes backups to this store")

// ErrForeign means that the store has the backups of a cluster that this one does not continue.
var ErrForeign = errors.New("the store has the backups of another cluster")

const maxEpoch = 64 << 10

var epochName = regexp.MustCompile(`^` + root + `epoch-\d{8,9}$`)

func epochKey(number int) string { return fmt.Sprintf("%sepoch-%08d", root, number) }

// Epochs returns all epochs in the store in the order of their numbers.
func (s Store) Epochs(ctx context.Context) ([]Epoch, error) {
	var epochs []Epoch
	for entry, err := range s.keys(ctx, root+"epoch-") {
		if err != nil {
			return nil, fmt.Errorf("list the epochs of the backups: %w", err)
		}
		if !epochName.MatchString(entry.Key) {
			continue
		}
		epoch, err := s.epoch(ctx, entry.Key)
		if err != nil {
			return nil, err
		}
		epochs = append(epochs, epoch)
	}
	return epochs, nil
}

func (s Store) epoch(ctx context.Context, key string) (Epoch, error) {
	reader, err := s.Bucket.NewReader(ctx, key, nil)
	if err != nil {
		return Epoch{}, fmt.Errorf("read the epoch %s: %w", key, err)
	}
	defer func() { _ = reader.Close() }()
	content, err := io.ReadAll(io.LimitReader(reader, maxEpoch))
	if err != nil {
		return Epoch{}, fmt.Errorf("read the epoch %s: %w", key, err)
	}
	var epoch Epoch
	if err := json.Unmarshal(content, &epoch); err != nil || epoch.Cluster == "" || epochKey(epoch.Number) != key {
		return Epoch{}, fmt.Errorf("the epoch %s is not valid: %w", key, errors.Join(ErrCorrupt, err))
	}
	return epoch, nil
}

// Claim returns the epoch of a cluster, and begins it if it does not exist. follows is the number of the epoch that the cluster
// continues or replaces, 0 for none. The error is ErrSuperseded or ErrForeign if the cluster may not write.
func (s Store) Claim(ctx context.Context, cluster string, follows int, now time.Time) (Epoch, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return Epoch{}, err
	}
	next, found, err := claim(epochs, cluster, follows)
	if err != nil || found {
		return next, err
	}
	next.ID, next.Created = rand.Text(), now.UTC()
	content, err := json.Marshal(next)
	if err != nil {
		return Epoch{}, fmt.Errorf("begin the epoch %d: %w", next.Number, err)
	}
	err = s.put(ctx, epochKey(next.Number), true, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil && !exists(err) {
		return Epoch{}, err
	}
	// A directory store does not create objects atomically.
	return next, s.Check(ctx, next)
}

// claim returns the epoch of a cluster, or the one that it begins. It is pure.
func claim(epochs []Epoch, cluster string, follows int) (next Epoch, found bool, err error) {
	latest := Epoch{}
	if len(epochs) > 0 {
		latest = epochs[len(epochs)-1]
	}
	if latest.Cluster == cluster {
		return latest, true, nil
	}
	for _, epoch := range epochs {
		if epoch.Cluster == cluster {
			return Epoch{}, false, fmt.Errorf("%w: the epoch %d belongs to the cluster %s", ErrSuperseded, latest.Number, latest.Cluster)
		}
	}
	if latest.Number != follows {
		return Epoch{}, false, fmt.Errorf("%w: the epoch %d belongs to the cluster %s", ErrForeign, latest.Number, latest.Cluster)
	}
	return Epoch{Number: latest.Number + 1, Cluster: cluster, Follows: follows}, false, nil
}

// Check returns ErrSuperseded unless an epoch is the latest one in the store. It is called before each upload.
func (s Store) Check(ctx context.Context, epoch Epoch) error {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return err
	}
	if len(epochs) == 0 {
		return fmt.Errorf("the epoch %d is missing in the store: %w", epoch.Number, ErrCorrupt)
	}
	if latest := epochs[len(epochs)-1]; latest.ID != epoch.ID {
		return fmt.Errorf("%w: the epoch %d belongs to the cluster %s", ErrSuperseded, latest.Number, latest.Cluster)
	}
	return nil
}

// Continues reports whether the latest epoch belongs to a cluster, or to one that continues it. It is pure.
func Continues(epochs []Epoch, cluster string) bool {
	byNumber := map[int]Epoch{}
	for _, epoch := range epochs {
		byNumber[epoch.Number] = epoch
	}
	if len(epochs) == 0 {
		return false
	}
	for at := epochs[len(epochs)-1]; at.Number > 0; at = byNumber[at.Follows] {
		if at.Cluster == cluster {
			return true
		}
		if at.Follows >= at.Number {
			return false
		}
	}
	return false
}
