package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Compact merges the latest chain into a new full snapshot, so that a restoration needs fewer changes. It does not need etcd.
// directory is for temporary files of the size of the database. Without delta snapshots, it returns the existing full snapshot.
func (s Store) Compact(ctx context.Context, directory, compression string, now time.Time) (object Object, err error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return Object{}, err
	}
	objects, err := s.List(ctx)
	if err != nil {
		return Object{}, err
	}
	epoch, chains, err := choose(epochs, objects, 0)
	if err != nil {
		return Object{}, err
	}
	if chains[0].Missing > 0 {
		return Object{}, fmt.Errorf("%w: the revision %d is missing", ErrGap, chains[0].Missing)
	}
	if len(chains[0].Deltas) == 0 {
		return chains[0].Full, nil
	}
	work, err := os.MkdirTemp(directory, "compact-")
	if err != nil {
		return Object{}, fmt.Errorf("prepare the compaction: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	path := filepath.Join(work, "db")
	made, err := s.build(ctx, chains[0], path)
	if err != nil {
		return Object{}, err
	}
	if made.cut != "" {
		return Object{}, fmt.Errorf("%w: %s", ErrCorrupt, made.cut)
	}
	file, err := os.Open(path)
	if err != nil {
		return Object{}, fmt.Errorf("read the merged database: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return s.PutFull(ctx, Written{Epoch: epoch, Compression: compression, Now: now}, made.revision, withChecksum(file))
}

// withChecksum returns a stream in the format of the Maintenance API: the database, and its SHA-256.
func withChecksum(database io.Reader) io.Reader {
	sum := sha256.New()
	return io.MultiReader(io.TeeReader(database, sum), &lazyReader{read: func() []byte { return sum.Sum(nil) }})
}

// lazyReader returns content that is known only when it is read.
type lazyReader struct {
	read func() []byte
	rest []byte
}

func (l *lazyReader) Read(into []byte) (int, error) {
	if l.read != nil {
		l.rest, l.read = l.read(), nil
	}
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
