package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// RevisionBump is added to the revision of a restored cluster. Clients may have seen revisions that are lost. They must never
// see them again with other content.
const RevisionBump = 1_000_000_000

// ErrOlder means that the backups end before the required revision.
var ErrOlder = errors.New("the store has only older backups")

// ErrNone means that the store has no backup.
var ErrNone = errors.New("the store has no backup")

// Target is what is restored, and how the new cluster begins.
type Target struct {
	// Epoch is the number of the epoch to restore; 0 for the latest one with a full snapshot.
	Epoch int
	// AtLeast is the revision that the backups must reach; 0 to accept any.
	AtLeast int64
	// Name and PeerURL are those of the only member. Token gives the new cluster its identifier.
	Name, PeerURL, Token string
	// Directory is the data directory of etcd that is created. It must not exist.
	Directory string
	// Bump is added to the revision. All earlier revisions are compacted, so that watches of clients end. 0 keeps the revision.
	Bump int64
}

// Restored is the result of a restoration.
type Restored struct {
	// Epoch is the epoch that was restored, and Latest the number of the latest epoch in the store.
	Epoch  Epoch `json:"epoch"`
	Latest int   `json:"latestEpoch"`
	// Revision is the last revision of the backups that was restored.
	Revision int64 `json:"revision"`
	// Notes describe damaged or missing backups that were not used.
	Notes []string `json:"notes,omitempty"`
}

// Restore creates a data directory of etcd from the newest backups that are complete and undamaged. The directory appears
// under its name only when it is complete. Files next to it with the suffixes .part and .work are replaced.
func (s Store) Restore(ctx context.Context, target Target) (Restored, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return Restored{}, err
	}
	objects, err := s.List(ctx)
	if err != nil {
		return Restored{}, err
	}
	epoch, chains, err := choose(epochs, objects, target.Epoch)
	if err != nil {
		return Restored{}, err
	}
	result := Restored{Epoch: epoch, Latest: epochs[len(epochs)-1].Number}
	work := target.Directory + ".work"
	defer func() { _ = os.RemoveAll(work) }()
	for _, chain := range chains {
		if chain.Last < target.AtLeast {
			result.Notes = append(result.Notes, fmt.Sprintf("%s and its delta snapshots end at the revision %d", chain.Full.Key, chain.Last))
			continue
		}
		if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o700)); err != nil {
			return Restored{}, fmt.Errorf("prepare the restoration: %w", err)
		}
		path := filepath.Join(work, "db")
		made, err := s.build(ctx, chain, path)
		if made.cut != "" {
			result.Notes = append(result.Notes, made.cut)
		}
		switch {
		case errors.Is(err, ErrCorrupt):
			result.Notes = append(result.Notes, err.Error())
			continue
		case err != nil:
			return Restored{}, err
		case made.revision < target.AtLeast:
			continue
		}
		result.Revision = made.revision
		return result, target.install(path)
	}
	return result, fmt.Errorf("%w: the revision %d is required: %v", ErrOlder, target.AtLeast, result.Notes)
}

// Last returns the revision up to which the latest chain contains all changes. It returns ErrNone without backups.
func (s Store) Last(ctx context.Context) (int64, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return 0, err
	}
	objects, err := s.List(ctx)
	if err != nil {
		return 0, err
	}
	_, chains, err := choose(epochs, objects, 0)
	if err != nil {
		return 0, err
	}
	return chains[0].Last, nil
}

// choose returns the epoch to restore and its chains, the newest first. It is pure. The latest epoch may have no full snapshot
// yet; then the one that it follows is restored.
func choose(epochs []Epoch, objects []Object, number int) (Epoch, []Chain, error) {
	byNumber := map[int]Epoch{}
	for _, epoch := range epochs {
		byNumber[epoch.Number] = epoch
	}
	if len(epochs) == 0 {
		return Epoch{}, nil, ErrNone
	}
	at, found := epochs[len(epochs)-1], true
	if number != 0 {
		at, found = byNumber[number]
	}
	for found {
		if chains := Chains(objects, at.Number); len(chains) > 0 {
			return at, chains, nil
		}
		if number != 0 || at.Follows >= at.Number {
			break
		}
		at, found = byNumber[at.Follows]
	}
	return Epoch{}, nil, ErrNone
}

// install creates the data directory from a database.
func (t Target) install(path string) (err error) {
	defer guard(&err)
	part := t.Directory + ".part"
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("prepare the restoration: %w", err)
	}
	err = etcdsnapshot.NewV3(zap.NewNop()).Restore(etcdsnapshot.RestoreConfig{
		SnapshotPath: path, SkipHashCheck: true, // it was verified, and changed since
		Name: t.Name, PeerURLs: []string{t.PeerURL}, InitialCluster: t.Name + "=" + t.PeerURL, InitialClusterToken: t.Token,
		OutputDataDir: part, RevisionBump: uint64(max(0, t.Bump)), MarkCompacted: t.Bump > 0,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("create the data directory of etcd: %w", err), os.RemoveAll(part))
	}
	if err := os.Rename(part, t.Directory); err != nil {
		return fmt.Errorf("create the data directory of etcd: %w", err)
	}
	parent, err := os.Open(filepath.Dir(t.Directory))
	if err != nil {
		return fmt.Errorf("create the data directory of etcd: %w", err)
	}
	return errors.Join(parent.Sync(), parent.Close())
}
