// Package objectstore describes where backups are stored. It depends on no client of a store: see the package open.
package objectstore

import "fmt"

// Location is where objects are stored.
type Location struct {
	// Provider is the type of the infrastructure, such as "aws" or "local", or one of the names S3, ABS, GCS and Local.
	Provider string `json:"provider"`
	// Container is the name of the bucket.
	Container string `json:"container"`
	// Prefix is the path of the objects in the bucket, without a slash at its end.
	Prefix string `json:"prefix"`
	// CredentialsDirectory contains a file for each key of the credentials. It is read each time a bucket is opened, so that
	// rotated credentials are used.
	CredentialsDirectory string `json:"credentialsDirectory,omitempty"`
	// Directory contains a subdirectory for each bucket. It is used by the provider local without an access key.
	Directory string `json:"directory,omitempty"`
}

// The kinds of stores.
const (
	KindS3        = "S3"
	KindAzure     = "ABS"
	KindGoogle    = "GCS"
	KindDirectory = "Local"
)

// kinds are the stores of infrastructures.
var kinds = map[string]string{
	"aws": KindS3, "stackit": KindS3, "azure": KindAzure, "gcp": KindGoogle, "local": KindDirectory,
	KindS3: KindS3, KindAzure: KindAzure, KindGoogle: KindGoogle, KindDirectory: KindDirectory,
}

// Supported returns an error unless buckets of a provider can be opened.
func Supported(provider string) error {
	if kinds[provider] == "" {
		return fmt.Errorf("the provider %q is not supported: use aws, azure, gcp, stackit or local", provider)
	}
	return nil
}

// KindOf returns the kind of the store of a provider; empty if it is not supported.
func KindOf(provider string) string { return kinds[provider] }

// KeyAccessKeyID is the key of credentials for a store with the API of S3 that contains the identifier of the access key.
const KeyAccessKeyID = "accessKeyID"

// InDirectory reports whether a provider stores buckets in a directory of the node if its credentials have no access key.
func InDirectory(provider string) bool { return kinds[provider] == KindDirectory }
