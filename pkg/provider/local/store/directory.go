package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trellis-k8s/trellis/pkg/extension"
)

// directoryMode gives the group of etcd write permission.
const directoryMode = 0o775

// Directory is a directory with a subdirectory for each bucket. It is empty if this extension has none.
type Directory string

var _ Store = Directory("")

// Create creates a bucket if it does not exist.
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
		err = os.Chmod(path, directoryMode) // the umask may have removed bits
	}
	if err != nil {
		return fmt.Errorf("create the directory of bucket %s: %w", bucket, err)
	}
	return nil
}

// Delete deletes a bucket with its contents, if it exists.
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

// DeleteEntry deletes the contents of an entry in a bucket.
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

// path returns the path of a subdirectory. It returns an error if the name is not a plain file name.
func (d Directory) path(name string) (string, error) {
	switch {
	case d == "":
		return "", extension.ConfigurationProblem(errors.New(
			"this extension has no directory for buckets: run it with --backup-directory, " +
				"or add the key " + KeyAccessKeyID + " to the Secret of the bucket"))
	case !filepath.IsLocal(name) || filepath.Base(name) != name || name == ".":
		return "", extension.ConfigurationProblem(fmt.Errorf("the name of a bucket must be a valid directory name, which %q is not", name))
	}
	return filepath.Join(string(d), name), nil
}
