package open

import (
	"context"
	"fmt"

	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2/google"

	"github.com/trellis-k8s/trellis/pkg/objectstore/s3"
)

// KeyServiceAccount is the key of the credentials for Google Cloud Storage, with the key of a service account in JSON.
const KeyServiceAccount = "serviceaccount.json"

// scope of access to objects of Google Cloud Storage.
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// openGoogle opens a bucket of Google Cloud Storage with the key of a service account.
func openGoogle(ctx context.Context, name string, data map[string][]byte) (*blob.Bucket, error) {
	if len(data[KeyServiceAccount]) == 0 {
		return nil, fmt.Errorf("the key %s is missing", KeyServiceAccount)
	}
	credentials, err := google.CredentialsFromJSONWithType(ctx, data[KeyServiceAccount], google.ServiceAccount, scope)
	if err != nil {
		return nil, fmt.Errorf("the key %s is not the key of a service account in JSON", KeyServiceAccount) // the error might contain it
	}
	transport, err := s3.Transport(nil)
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = responseTimeout
	client, err := gcp.NewHTTPClient(transport, gcp.CredentialsTokenSource(credentials))
	if err != nil {
		return nil, fmt.Errorf("set up the client of the store: %w", err)
	}
	return gcsblob.OpenBucket(ctx, client, name, nil)
}
