package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trellis-k8s/trellis/pkg/extension"
)

// directoryMode lets the group of etcd write.
const directoryMode = 0o775

// Directory has all buckets, each as a directory. It is empty if this extension has none.
type Directory string

var _ Store = Directory("")

// Create makes a bucket. One that exists stays.
func (d Directory) Create(_ context.Context, bucket string) error {
	path, err := d.path(bucket)
	if err != nil {
		return err
	}
	err = os.Mkdir(path, directoryMode)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(path, directoryMode) // the umask takes bits away
	}
	if err != nil {
		return fmt.Errorf("make the directory of bucket %s: %w", bucket, err)
	}
	return nil
}

// Delete deletes a bucket with all that is in it. One that is gone is deleted.
func (d Directory) Delete(_ context.Context, bucket string) error {
	path, err := d.path(bucket)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove the directory of bucket %s: %w", bucket, err)
	}
	return nil
}

// DeleteEntry deletes all that an entry has in a bucket.
func (d Directory) DeleteEntry(_ context.Context, bucket, entry string) error {
	path, err := d.path(bucket)
	if err == nil {
		path, err = Directory(path).path(entry)
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove the backups of %s from bucket %s: %w", entry, bucket, err)
	}
	return nil
}

// path returns a directory of the store. Its name must not lead elsewhere.
func (d Directory) path(name string) (string, error) {
	switch {
	case d == "":
		return "", extension.ConfigurationProblem(errors.New(
			"this extension has no directory for buckets: run it with --backup-directory, or give the Secret of the bucket the key " + KeyAccessKeyID))
	case !filepath.IsLocal(name) || filepath.Base(name) != name || name == ".":
		return "", extension.ConfigurationProblem(fmt.Errorf("the name of a bucket has to be that of a directory, %q is not", name))
	}
	return filepath.Join(string(d), name), nil
}
