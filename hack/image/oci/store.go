package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations of an image in the index. containerd reads the name of an imported image from the first one, this package
// from the second one.
const (
	containerdName = "io.containerd.image.name"
	referenceName  = "org.opencontainers.image.ref.name"
)

// Spec describes an image.
type Spec struct {
	// Reference is the name with the tag. The tag "content" is replaced by the first characters of the digest.
	Reference  string
	Layers     []Layer
	Entrypoint []string
	// Command is the command, or the default arguments of the entrypoint.
	Command    []string
	Env        []string
	User       string
	StopSignal string
}

// Store is an OCI layout in a directory.
type Store struct {
	path layout.Path
}

// Open opens the layout in a directory, and creates it if it does not exist.
func Open(directory string) (*Store, error) {
	path, err := layout.FromPath(directory)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = layout.Write(directory, empty.Index)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the images in %s: %w", directory, err)
	}
	for _, sub := range []string{"stamps", "blobs/sha256"} {
		if err := os.MkdirAll(filepath.Join(directory, sub), 0o755); err != nil {
			return nil, fmt.Errorf("opening the images in %s: %w", directory, err)
		}
	}
	return &Store{path}, nil
}

// Write creates an image and stores it under its reference, replacing an earlier one. It returns the reference and
// whether the image differs from the earlier one.
func (s *Store) Write(spec Spec) (reference string, changed bool, err error) {
	image, err := s.image(spec)
	if err != nil {
		return "", false, fmt.Errorf("creating the image %s: %w", spec.Reference, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", false, fmt.Errorf("creating the image %s: %w", spec.Reference, err)
	}
	reference = withContentTag(spec.Reference, digest)
	images, err := s.Images()
	if err != nil {
		return "", false, err
	}
	if images[reference] == digest.String() {
		return reference, false, nil
	}
	annotations := layout.WithAnnotations(map[string]string{containerdName: reference, referenceName: reference})
	if err := s.path.ReplaceImage(image, match.Name(reference), annotations); err != nil {
		return "", false, fmt.Errorf("storing the image %s: %w", reference, err)
	}
	return reference, true, nil
}

func (s *Store) image(spec Spec) (v1.Image, error) {
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for _, l := range spec.Layers {
		layer, err := s.layer(l)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCIUncompressedLayer}); err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.History = architecture, "linux", nil
	file.Config = v1.Config{Entrypoint: spec.Entrypoint, Cmd: spec.Command, User: spec.User, StopSignal: spec.StopSignal, Env: spec.Env}
	return mutate.ConfigFile(image, file)
}

// layer returns the existing layer of the same files, or creates it.
func (s *Store) layer(l Layer) (blob, error) {
	fingerprint, err := l.fingerprint()
	if err != nil {
		return blob{}, err
	}
	stamp := filepath.Join(string(s.path), "stamps", fingerprint)
	if content, err := os.ReadFile(stamp); err == nil {
		if b, err := s.blob(string(content)); err == nil {
			return b, nil
		}
	}
	f, err := os.CreateTemp(string(s.path), ".layer")
	if err != nil {
		return blob{}, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it was renamed, unless something failed before
	h := sha256.New()
	err = l.write(io.MultiWriter(f, h))
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return blob{}, err
	}
	digest := hex.EncodeToString(h.Sum(nil))
	if err := os.Rename(f.Name(), s.blobPath(digest)); err != nil {
		return blob{}, err
	}
	if err := os.WriteFile(stamp, []byte(digest), 0o644); err != nil { //nolint:gosec // not secret
		return blob{}, err
	}
	return s.blob(digest)
}

func (s *Store) blobPath(digest string) string {
	return filepath.Join(string(s.path), "blobs", "sha256", digest)
}

func (s *Store) blob(digest string) (blob, error) {
	info, err := os.Stat(s.blobPath(digest))
	if err != nil {
		return blob{}, err
	}
	return blob{s.blobPath(digest), v1.Hash{Algorithm: "sha256", Hex: digest}, info.Size()}, nil
}

// Images returns the digests of all images, by reference.
func (s *Store) Images() (map[string]string, error) {
	manifests, err := s.manifests()
	if err != nil {
		return nil, err
	}
	images := map[string]string{}
	for _, m := range manifests {
		images[m.Annotations[referenceName]] = m.Digest.String()
	}
	return images, nil
}

// Image returns an image.
func (s *Store) Image(reference string) (v1.Image, error) {
	images, err := s.Images()
	if err != nil {
		return nil, err
	}
	digest, found := images[reference]
	if !found {
		return nil, fmt.Errorf("the image %s is not in %s: build it first", reference, s.path)
	}
	hash, err := v1.NewHash(digest)
	if err != nil {
		return nil, err
	}
	return s.path.Image(hash)
}

// Remove removes the images for which keep returns false, and their unshared blobs.
func (s *Store) Remove(keep func(reference string) bool) error {
	remove := func(d v1.Descriptor) bool { return !keep(d.Annotations[referenceName]) }
	if err := s.path.RemoveDescriptors(remove); err != nil {
		return fmt.Errorf("removing images: %w", err)
	}
	unused, err := s.path.GarbageCollect()
	if err != nil {
		return fmt.Errorf("removing images: %w", err)
	}
	for _, hash := range unused {
		if err := s.path.RemoveBlob(hash); err != nil {
			return fmt.Errorf("removing images: %w", err)
		}
	}
	return nil
}

func (s *Store) manifests() ([]v1.Descriptor, error) {
	index, err := s.path.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("reading the images in %s: %w", s.path, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the images in %s: %w", s.path, err)
	}
	return manifest.Manifests, nil
}

func marshal(value any) ([]byte, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return content, nil
}
