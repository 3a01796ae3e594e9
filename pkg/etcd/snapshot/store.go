package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

const (
	// partSize is the size in bytes of the parts in which an object is sent, which limits the memory.
	partSize = 8 << 20
	// contentType avoids that the beginning of an object is buffered to detect its type.
	contentType = "application/octet-stream"
)

// Store contains the backups of one Etcd.
type Store struct {
	// Bucket has the prefix of the Etcd.
	Bucket *blob.Bucket
}

// List returns all snapshots in the store, in the order of their names.
func (s Store) List(ctx context.Context) ([]Object, error) {
	var objects []Object
	for entry, err := range s.keys(ctx, root) {
		if err != nil {
			return nil, fmt.Errorf("list the backups: %w", err)
		}
		if object, is := parseKey(entry.Key); is {
			object.Size = entry.Size
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// keys lists the objects whose names begin with a prefix. It ends with the first error.
func (s Store) keys(ctx context.Context, prefix string) func(yield func(*blob.ListObject, error) bool) {
	return func(yield func(*blob.ListObject, error) bool) {
		list := s.Bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			entry, err := list.Next(ctx)
			if errors.Is(err, io.EOF) || !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// Delete deletes a snapshot. It is not an error if the snapshot does not exist.
func (s Store) Delete(ctx context.Context, object Object) error {
	if err := s.Bucket.Delete(ctx, object.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("delete the backup %s: %w", object.Key, err)
	}
	return nil
}

// put writes an object. It does not exist before write and put have returned without an error. With create, it must not exist yet.
func (s Store) put(ctx context.Context, key string, create bool, write func(io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var file *os.File
	w, err := s.Bucket.NewWriter(ctx, key, &blob.WriterOptions{
		BufferSize: partSize, MaxConcurrency: 1, ContentType: contentType, IfNotExist: create,
		BeforeWrite: func(as func(any) bool) error {
			as(&file)
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("write the object %s: %w", key, err)
	}
	err = write(w)
	if err == nil && file != nil {
		err = file.Sync() // a directory store must survive a loss of power
	}
	if err != nil {
		cancel() // Close then discards the object
		_ = w.Close()
		return fmt.Errorf("write the object %s: %w", key, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write the object %s: %w", key, err)
	}
	return nil
}

// exists reports whether an error of put means that the object exists already.
func exists(err error) bool { return gcerrors.Code(err) == gcerrors.FailedPrecondition }
