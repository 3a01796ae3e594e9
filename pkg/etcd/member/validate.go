package member

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// errDamaged means that etcd cannot use its data. Other errors, such as those of the disk, may go away, so they never cause a restoration.
var errDamaged = errors.New("the data are damaged")

// damages are the errors of libraries that mean that a file was damaged.
var damages = []error{
	bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch,
	wal.ErrCRCMismatch, wal.ErrMetadataConflict, wal.ErrFileNotFound, wal.ErrSliceOutOfRange, walpb.ErrCRCMismatch,
}

// openTimeout limits the time to open the database, which another process may have locked.
const openTimeout = 5 * time.Second

func (d data) cleanFile() string    { return filepath.Join(d.directory, "clean") }
func (d data) damagedDir() string   { return d.etcdDirectory() + ".damaged" }
func (d data) databaseFile() string { return filepath.Join(d.etcdDirectory(), "member", "snap", "db") }

// closed reports whether etcd has ended by request, and forgets it, because etcd is started now.
func (d data) closed() bool {
	err := os.Remove(d.cleanFile())
	return err == nil
}

// validate checks the data of etcd: fully after an unclean end, otherwise only whether the database can be opened. The revision
// is the last one in the database, 0 if it cannot be read. Damaged data are an errDamaged.
func (d data) validate(full bool) (revision int64, err error) {
	revision, err = d.validateDatabase(full)
	if err != nil || !full {
		return revision, classify(err)
	}
	_, err = wal.ValidSnapshotEntries(zap.NewNop(), filepath.Join(d.etcdDirectory(), "member", "wal"))
	return revision, classify(err)
}

func classify(err error) error {
	for _, damage := range damages {
		if errors.Is(err, damage) {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	return err
}

func (d data) validateDatabase(full bool) (revision int64, err error) {
	info, err := os.Stat(d.databaseFile())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: the database is missing", errDamaged)
	}
	if err != nil {
		return 0, fmt.Errorf("validate the data of etcd: %w", err)
	}
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("%w: %v", errDamaged, why)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped into memory, and may be too short
	db, err := bolt.Open(d.databaseFile(), 0o400, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		if info.Size() == 0 || strings.Contains(err.Error(), "file size too small") { // bbolt has no value for this error
			return 0, fmt.Errorf("%w: %w", errDamaged, err)
		}
		return 0, fmt.Errorf("validate the data of etcd: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) error {
		if bucket := tx.Bucket([]byte("key")); bucket != nil {
			if key, _ := bucket.Cursor().Last(); key != nil {
				revision = mvcc.BytesToRev(key).Main
			}
		}
		if !full {
			return nil
		}
		var problems []string
		for problem := range tx.Check() {
			if len(problems) < 5 {
				problems = append(problems, problem.Error())
			}
		}
		if len(problems) > 0 {
			return fmt.Errorf("%w: %s", errDamaged, strings.Join(problems, "; "))
		}
		return nil
	})
	return revision, err
}

// setAside renames the damaged data, and removes the data that were renamed before.
func (d data) setAside() error {
	if err := os.RemoveAll(d.damagedDir()); err != nil {
		return fmt.Errorf("remove the previous damaged data: %w", err)
	}
	if err := os.Rename(d.etcdDirectory(), d.damagedDir()); err != nil {
		return fmt.Errorf("set the damaged data aside: %w", err)
	}
	return nil
}
