package oci

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry serves the blobs of the store as an OCI registry. It keeps manifests in memory: [Store.Announce] sends them.
func (s *Store) Registry() http.Handler {
	return registry.New(registry.WithBlobHandler(blobs{s}), registry.Logger(log.New(io.Discard, "", 0)))
}

// Announce sends the manifests of the images with these references to a registry that serves the blobs of this store, for example
// "10.0.0.1:5000".
func (s *Store) Announce(ctx context.Context, address string, references []string) error {
	for _, reference := range references {
		_, path, found := strings.Cut(reference, "/")
		if !found {
			return fmt.Errorf("the image %s has no registry in its name", reference)
		}
		to, err := name.ParseReference(address+"/"+path, name.Insecure)
		if err != nil {
			return fmt.Errorf("the image %s: %w", reference, err)
		}
		image, err := s.Image(reference)
		if err != nil {
			return err
		}
		if err := remote.Write(to, image, remote.WithContext(ctx)); err != nil {
			return fmt.Errorf("sending the manifest of %s to %s: %w", reference, address, err)
		}
	}
	return nil
}

type blobs struct{ store *Store }

// Get opens a blob.
func (b blobs) Get(_ context.Context, _ string, h v1.Hash) (io.ReadCloser, error) {
	f, err := os.Open(b.store.blobPath(h.Hex))
	if os.IsNotExist(err) {
		return nil, registry.ErrNotFound
	}
	return f, err
}

// Stat returns the number of bytes of a blob.
func (b blobs) Stat(_ context.Context, _ string, h v1.Hash) (int64, error) {
	info, err := os.Stat(b.store.blobPath(h.Hex))
	if os.IsNotExist(err) {
		return 0, registry.ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
