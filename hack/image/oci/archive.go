package oci

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const architecture = runtime.GOARCH

// ContentTag is the tag of a [Spec] that is replaced by a tag derived from the digest of the image.
const ContentTag = "content"

func withContentTag(reference string, digest v1.Hash) string {
	if name, found := strings.CutSuffix(reference, ":"+ContentTag); found {
		// In YAML, a tag of digits, or of digits and one "e", would be a number.
		return name + ":sha-" + digest.Hex[:12]
	}
	return reference
}

// Archive writes the images with these references as an OCI archive. It omits the blobs for which has returns true,
// because the reader already has them.
func (s *Store) Archive(w io.Writer, references []string, has func(digest string) bool) error {
	all, err := s.manifests()
	if err != nil {
		return err
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	var blobs []v1.Descriptor
	for _, m := range all {
		if !slices.Contains(references, m.Annotations[referenceName]) {
			continue
		}
		m.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
		index.Manifests = append(index.Manifests, m)
		parts, err := s.parts(m)
		if err != nil {
			return err
		}
		blobs = append(blobs, parts...)
	}
	if len(index.Manifests) != len(references) {
		return fmt.Errorf("of the images %v, only %d are in %s", references, len(index.Manifests), s.path)
	}
	t := tar.NewWriter(w)
	content, err := marshal(index)
	if err != nil {
		return err
	}
	if err := entry(t, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	if err := entry(t, "index.json", content); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, b := range blobs {
		if written[b.Digest.Hex] || has(b.Digest.String()) {
			continue
		}
		written[b.Digest.Hex] = true
		if err := s.entry(t, b); err != nil {
			return fmt.Errorf("writing %s: %w", b.Digest, err)
		}
	}
	return t.Close()
}

// parts returns the blobs of an image: the manifest, the configuration and the layers.
func (s *Store) parts(m v1.Descriptor) ([]v1.Descriptor, error) {
	image, err := s.path.Image(m.Digest)
	if err != nil {
		return nil, fmt.Errorf("reading the image %s: %w", m.Annotations[referenceName], err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, fmt.Errorf("reading the image %s: %w", m.Annotations[referenceName], err)
	}
	return append([]v1.Descriptor{m, manifest.Config}, manifest.Layers...), nil
}

func entry(t *tar.Writer, name string, content []byte) error {
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}

func (s *Store) entry(t *tar.Writer, b v1.Descriptor) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "blobs/sha256/" + b.Digest.Hex, Mode: 0o644, Size: b.Size}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	f, err := os.Open(s.blobPath(b.Digest.Hex))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	_, err = io.Copy(t, f)
	return err
}
