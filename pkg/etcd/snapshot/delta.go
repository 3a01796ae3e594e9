package snapshot

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protodelim"
)

// The records in the body of a delta snapshot: a byte with the type, and the content.
const (
	// recordEvent is followed by a mvccpb.Event with its length in front.
	recordEvent = 'E'
	// recordLease is followed by the identifier of a lease and the seconds for which it was granted, as varints.
	recordLease = 'L'
)

// maxEvent limits the size of an event in bytes.
const maxEvent = 256 << 20

// ErrGap means that changes are missing, so that a full snapshot is necessary.
var ErrGap = errors.New("changes of etcd are missing")

// Spool collects changes on the disk until they are stored as a delta snapshot. Its memory does not depend on their number.
type Spool struct {
	file   *os.File
	buffer *bufio.Writer
	// First and Last are the revisions of the changes. Last is First-1 while there are none.
	First, Last int64
	// Size is the size of the changes in bytes.
	Size int64
	// Leases are the leases to which the changes refer.
	Leases map[int64]bool
}

// NewSpool creates an empty spool for the changes after a revision. Its file has no name in the directory.
func NewSpool(directory string, after int64) (*Spool, error) {
	file, err := os.CreateTemp(directory, "delta-")
	if err != nil {
		return nil, fmt.Errorf("create the file for changes: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("create the file for changes: %w", err), file.Close())
	}
	return &Spool{file: file, buffer: bufio.NewWriterSize(file, 64<<10), First: after + 1, Last: after, Leases: map[int64]bool{}}, nil
}

// Close releases the space.
func (s *Spool) Close() { _ = s.file.Close() }

// Append adds changes. It returns ErrGap if they do not continue the previous ones.
func (s *Spool) Append(events []*clientv3.Event) error {
	for _, event := range events {
		revision := event.Kv.ModRevision
		if revision != s.Last && revision != s.Last+1 || revision < s.First {
			return fmt.Errorf("%w: the revision %d follows %d", ErrGap, revision, s.Last)
		}
		if err := s.buffer.WriteByte(recordEvent); err != nil {
			return fmt.Errorf("write a change to the disk: %w", err)
		}
		n, err := protodelim.MarshalTo(s.buffer, event)
		if err != nil {
			return fmt.Errorf("write a change to the disk: %w", err)
		}
		s.Last = revision
		s.Size += int64(n) + 1
		if event.Kv.Lease != 0 {
			s.Leases[event.Kv.Lease] = true
		}
	}
	return nil
}

// Empty reports whether there are no changes.
func (s *Spool) Empty() bool { return s.Last < s.First }

// PutDelta stores the changes of a spool. ttls are the seconds for which leases were granted. It may be called again after an error.
func (s Store) PutDelta(ctx context.Context, written Written, spool *Spool, ttls map[int64]int64) (Object, error) {
	if err := spool.buffer.Flush(); err != nil {
		return Object{}, fmt.Errorf("write changes to the disk: %w", err)
	}
	object := Object{
		Epoch: written.Epoch.Number, Kind: KindDelta, First: spool.First, Last: spool.Last, Created: written.Now.UTC().Truncate(time.Millisecond),
	}
	return s.putSnapshot(ctx, written, object, func(w io.Writer) error {
		if _, err := spool.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(w, spool.file); err != nil {
			return err
		}
		var record []byte
		for id, ttl := range ttls {
			record = append(record[:0], recordLease)
			record = binary.AppendVarint(binary.AppendVarint(record, id), ttl)
			if _, err := w.Write(record); err != nil {
				return err
			}
		}
		return nil
	})
}

// readDelta calls event and lease for each record in the body of a delta snapshot.
func readDelta(from io.Reader, event func(*mvccpb.Event) error, lease func(id, ttl int64) error) error {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		kind, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch kind {
		case recordEvent:
			read := &mvccpb.Event{}
			if err := (protodelim.UnmarshalOptions{MaxSize: maxEvent}).UnmarshalFrom(r, read); err != nil {
				return fmt.Errorf("%w: it has an invalid change: %w", ErrCorrupt, err)
			}
			if read.Kv == nil { // what a flipped bit can leave of it
				return fmt.Errorf("%w: it has a change without a key", ErrCorrupt)
			}
			if err := event(read); err != nil {
				return err
			}
		case recordLease:
			id, err := binary.ReadVarint(r)
			ttl, ttlErr := binary.ReadVarint(r)
			if err := errors.Join(err, ttlErr); err != nil {
				return fmt.Errorf("%w: it has an invalid lease: %w", ErrCorrupt, err)
			}
			if err := lease(id, ttl); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: it has an unknown record %q", ErrCorrupt, kind)
		}
	}
}
