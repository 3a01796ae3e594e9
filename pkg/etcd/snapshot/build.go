package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// built is a database that was built from a chain.
type built struct {
	// revision is its last revision.
	revision int64
	// cut is why the chain was not used up to its end, empty if it was.
	cut string
}

// build writes the database of a chain to a file in an existing directory. A damaged delta snapshot ends the chain: the
// caller decides whether the revision suffices. Each object is verified before it is used.
func (s Store) build(ctx context.Context, chain Chain, path string) (built, error) {
	if err := s.download(ctx, chain.Full, path, true); err != nil {
		return built{}, err
	}
	db, err := openDatabase(path)
	if err != nil {
		return built{}, fmt.Errorf("use the backup %s: %w", chain.Full.Key, err)
	}
	result, err := s.applyAll(ctx, db, chain, filepath.Join(filepath.Dir(path), "delta"))
	return result, errors.Join(err, db.close())
}

func (s Store) applyAll(ctx context.Context, db *database, chain Chain, file string) (built, error) {
	result := built{revision: db.revision()}
	if result.revision < chain.Full.Last {
		return result, fmt.Errorf("use the backup %s: %w: its revision is %d", chain.Full.Key, ErrCorrupt, result.revision)
	}
	for _, delta := range chain.Deltas {
		err := s.download(ctx, delta, file, false)
		if err == nil {
			err = db.apply(file)
		}
		result.revision = db.revision()
		if errors.Is(err, ErrCorrupt) {
			result.cut = err.Error()
			return result, nil
		}
		if err != nil {
			return result, err
		}
	}
	return result, os.RemoveAll(file)
}

// download writes the verified content of a snapshot to a file.
func (s Store) download(ctx context.Context, object Object, path string, database bool) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the backup to the disk: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return s.Read(ctx, object, func(content io.Reader) error {
		if !database {
			_, err := io.Copy(file, content)
			return err
		}
		db := &dbWriter{to: file}
		_, err := io.CopyBuffer(db, content, make([]byte, 256<<10))
		return err
	})
}

// database is an etcd database that no etcd uses.
type database struct {
	backend backend.Backend
	store   keyValues
	last    int64
}

// keyValues are the used methods of etcd's store of keys and values.
type keyValues interface {
	Rev() int64
	Write(trace *traceutil.Trace) mvcc.TxnWrite
	Commit()
	Close() error
}

// guard converts a panic of etcd's code about a damaged file to an error.
func guard(err *error) {
	if why := recover(); why != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, why)
	}
}

func openDatabase(path string) (db *database, err error) {
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped into memory
	be := backend.NewDefaultBackend(zap.NewNop(), path)
	store := mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	return &database{backend: be, store: store, last: store.Rev()}, nil
}

func (d *database) revision() int64 { return d.store.Rev() }

func (d *database) close() error {
	d.store.Commit()
	if err := errors.Join(d.store.Close(), d.backend.Close()); err != nil {
		return fmt.Errorf("close the restored database: %w", err)
	}
	return nil
}

// apply makes the changes in the file of a delta snapshot which the database does not have yet, each at its revision.
func (d *database) apply(path string) (err error) {
	defer guard(&err)
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the changes: %w", err)
	}
	defer func() { _ = file.Close() }()
	var pending []*mvccpb.Event
	flush := func() error {
		events := pending
		pending = nil
		return d.commit(events)
	}
	err = readDelta(file, func(event *mvccpb.Event) error {
		if len(pending) > 0 && pending[0].Kv.ModRevision != event.Kv.ModRevision {
			if err := flush(); err != nil {
				return err
			}
		}
		if event.Kv.ModRevision > d.last {
			pending = append(pending, event)
		}
		return nil
	}, d.putLease)
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	d.last = d.revision()
	return nil
}

// commit makes all changes of one revision. It returns ErrCorrupt unless they continue the database.
func (d *database) commit(events []*mvccpb.Event) error {
	if len(events) == 0 {
		return nil
	}
	revision := events[0].Kv.ModRevision
	if revision != d.revision()+1 {
		return fmt.Errorf("%w: the revision %d follows %d", ErrCorrupt, revision, d.revision())
	}
	txn := d.store.Write(traceutil.TODO())
	for _, event := range events {
		if event.Type == mvccpb.Event_DELETE {
			txn.DeleteRange(event.Kv.Key, nil)
			continue
		}
		txn.Put(event.Kv.Key, event.Kv.Value, lease.LeaseID(event.Kv.Lease))
	}
	changes := txn.Changes()
	same := len(changes) == len(events)
	for i := range changes {
		if !same {
			break
		}
		got, want := changes[i], events[i].Kv
		same = events[i].Type == mvccpb.Event_DELETE || got.CreateRevision == want.CreateRevision && got.Version == want.Version
	}
	txn.End()
	if !same || d.revision() != revision {
		return fmt.Errorf("%w: the changes of revision %d do not continue the database", ErrCorrupt, revision)
	}
	return nil
}

// putLease stores a lease that was granted after the full snapshot, so that the keys of the lease still expire.
func (d *database) putLease(id, ttl int64) error {
	tx := d.backend.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	schema.UnsafeCreateLeaseBucket(tx)
	if schema.MustUnsafeGetLease(tx, id) == nil {
		schema.MustUnsafePutLease(tx, &leasepb.Lease{ID: id, TTL: max(ttl, 1)})
	}
	return nil
}
