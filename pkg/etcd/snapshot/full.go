package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Written describes a snapshot that is written.
type Written struct {
	Epoch       Epoch
	Compression string
	// EtcdVersion is the version of the etcd.
	EtcdVersion string
	// Final is set for a full snapshot after which the cluster does not change any more.
	Final bool
	Now   time.Time
}

// PutFull stores a full snapshot, which is the stream of the Maintenance API of etcd. revision is a revision that the snapshot
// contains, which is the case if it was read before the stream was opened. The stream ends with a checksum of etcd, without
// which the snapshot is not stored.
func (s Store) PutFull(ctx context.Context, written Written, revision int64, stream io.Reader) (Object, error) {
	object := Object{Epoch: written.Epoch.Number, Kind: KindFull, First: revision, Last: revision, Created: written.Now.UTC().Truncate(time.Millisecond)}
	if written.Final {
		object.Kind = KindFinal
	}
	return s.putSnapshot(ctx, written, object, func(w io.Writer) error {
		checked := &checkedReader{from: stream, sum: sha256.New()}
		if _, err := io.Copy(w, checked); err != nil {
			return fmt.Errorf("read the snapshot from etcd: %w", err)
		}
		if !checked.valid() {
			return errors.New("read the snapshot from etcd: it is incomplete")
		}
		_, err := w.Write(checked.held) // the checksum
		return err
	})
}

// putSnapshot writes an object if its epoch is still the latest one.
func (s Store) putSnapshot(ctx context.Context, written Written, object Object, body func(io.Writer) error) (Object, error) {
	if err := s.Check(ctx, written.Epoch); err != nil {
		return Object{}, err
	}
	object.Key = object.key()
	header := Header{
		Kind: object.Kind, Epoch: object.Epoch, Cluster: written.Epoch.Cluster, First: object.First, Last: object.Last,
		Created: object.Created, Compression: written.Compression, EtcdVersion: written.EtcdVersion,
	}
	counted := &counter{}
	err := s.put(ctx, object.Key, false, func(w io.Writer) error { return encode(io.MultiWriter(w, counted), header, body) })
	object.Size = counted.size
	return object, err
}

type counter struct{ size int64 }

func (c *counter) Write(content []byte) (int, error) {
	c.size += int64(len(content))
	return len(content), nil
}

// Read reads an object and calls body with its content. It returns ErrCorrupt unless the object is complete, unchanged, and what
// its name says.
func (s Store) Read(ctx context.Context, object Object, body func(io.Reader) error) error {
	reader, err := s.Bucket.NewReader(ctx, object.Key, nil)
	if err != nil {
		return fmt.Errorf("read the backup %s: %w", object.Key, err)
	}
	defer func() { _ = reader.Close() }()
	err = decode(reader, func(header Header, content io.Reader) error {
		if header.Kind != object.Kind || header.Epoch != object.Epoch || header.First != object.First || header.Last != object.Last ||
			!header.Created.Equal(object.Created) {
			return fmt.Errorf("%w: its header does not belong to its name", ErrCorrupt)
		}
		return body(content)
	})
	if err != nil {
		return fmt.Errorf("read the backup %s: %w", object.Key, err)
	}
	return nil
}

// dbWriter writes the database of a full snapshot without the checksum of etcd at its end.
type dbWriter struct {
	to   io.Writer
	sum  []byte
	size int64
}

func (d *dbWriter) Write(content []byte) (int, error) {
	held := slices.Concat(d.sum, content)
	pass := max(0, len(held)-sha256.Size)
	n, err := d.to.Write(held[:pass])
	d.size += int64(n)
	d.sum = bytes.Clone(held[pass:])
	return len(content), err
}
