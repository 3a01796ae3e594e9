package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/trellis-k8s/trellis/pkg/objectstore/s3"
)

// Keys of credentials for Azure Blob Storage.
const (
	KeyStorageAccount = "storageAccount"
	KeyStorageKey     = "storageKey"
	KeyDomain         = "domain"
)

const defaultAzureDomain = "blob.core.windows.net"

// openAzure opens a container of Azure Blob Storage with the key of its account.
func openAzure(ctx context.Context, name string, data map[string][]byte) (*blob.Bucket, error) {
	account := string(data[KeyStorageAccount])
	var errs []error
	for _, key := range []string{KeyStorageAccount, KeyStorageKey} {
		if len(data[key]) == 0 {
			errs = append(errs, fmt.Errorf("the key %s is missing", key))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	credential, err := container.NewSharedKeyCredential(account, string(data[KeyStorageKey]))
	if err != nil {
		return nil, fmt.Errorf("the key %s is not valid", KeyStorageKey) // the error might contain it
	}
	address := url.URL{Scheme: "https", Host: account + "." + cmp.Or(string(data[KeyDomain]), defaultAzureDomain), Path: name}
	transport, err := s3.Transport(nil)
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = responseTimeout
	client, err := container.NewClientWithSharedKeyCredential(address.String(), credential, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the client of the store: %w", err)
	}
	return azureblob.OpenBucket(ctx, client, nil)
}
