// Package open opens the buckets in which backups are stored: S3, Azure Blob Storage, Google Cloud Storage, or a directory. The
// keys of credentials are those of etcd-backup-restore.
package open

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/trellis-k8s/trellis/pkg/objectstore"
	"github.com/trellis-k8s/trellis/pkg/objectstore/s3"
)

// Bucket opens the bucket at a location. Keys of objects are relative to its prefix. The caller closes the bucket.
func Bucket(ctx context.Context, location objectstore.Location) (*blob.Bucket, error) {
	if err := objectstore.Supported(location.Provider); err != nil {
		return nil, err
	}
	if location.Container == "" || location.Prefix == "" {
		return nil, errors.New("the store needs the name of a bucket and a prefix")
	}
	credentials, err := readCredentials(location.CredentialsDirectory)
	if err != nil {
		return nil, err
	}
	kind := objectstore.KindOf(location.Provider)
	if kind == objectstore.KindDirectory && len(credentials[s3.KeyAccessKeyID]) > 0 {
		kind = objectstore.KindS3
	}
	var bucket *blob.Bucket
	switch kind {
	case objectstore.KindS3:
		bucket, err = openS3(ctx, location.Container, credentials)
	case objectstore.KindAzure:
		bucket, err = openAzure(ctx, location.Container, credentials)
	case objectstore.KindGoogle:
		bucket, err = openGoogle(ctx, location.Container, credentials)
	default:
		bucket, err = openDirectory(location)
	}
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", location.Container, err)
	}
	return blob.PrefixedBucket(bucket, strings.TrimSuffix(location.Prefix, "/")+"/"), nil
}

// readCredentials returns the contents of the files in a directory by their names. Names that begin with a dot belong to the
// kubelet.
func readCredentials(directory string) (map[string][]byte, error) {
	if directory == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of the store: %w", err)
	}
	credentials := map[string][]byte{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		path := filepath.Join(directory, entry.Name())
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the credentials of the store: %w", err)
		}
		credentials[entry.Name()] = content
	}
	return credentials, nil
}

// openDirectory opens the subdirectory of a bucket. Unlike the other stores, it would create a bucket that does not exist,
// so it returns an error instead: a wrong directory must not look like an empty bucket.
func openDirectory(location objectstore.Location) (*blob.Bucket, error) {
	if location.Directory == "" {
		return nil, errors.New("the store has neither an access key nor a directory")
	}
	if !filepath.IsLocal(location.Container) || filepath.Base(location.Container) != location.Container {
		return nil, fmt.Errorf("%q is not a valid directory name", location.Container)
	}
	path := filepath.Join(location.Directory, location.Container)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("its directory does not exist")
	}
	return fileblob.OpenBucket(path, &fileblob.Options{
		NoTempDir: true, // the temporary directory is on another volume
		Metadata:  fileblob.MetadataDontWrite, DirFileMode: 0o770,
	})
}
