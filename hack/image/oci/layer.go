package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is a file, a symbolic link or a directory in a layer.
type File struct {
	// Path is the path in the image.
	Path string
	// Source is the local file with the content and permissions.
	Source string
	// Content is the content of a file without Source.
	Content []byte
	// Link is the target of a symbolic link.
	Link string
	// Directory makes the entry an empty directory.
	Directory bool
	// Mode is the permissions of a file without Source, or of a directory. Zero means 0644 for a file and 0755 for a
	// directory. fs.ModeSetuid makes a file with Source run as root.
	Mode fs.FileMode
}

// Layer is a layer. It consists of either files or a root file system in an archive.
type Layer struct {
	Files []File
	// Archive is the path of an uncompressed tar archive, which becomes the layer unchanged.
	Archive string
}

// fingerprint changes when the layer might have changed. It does not read large files, but compares size, time and inode.
func (l Layer) fingerprint() (string, error) {
	h := sha256.New()
	sources := func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(h, "%s %d %d %o\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return err
	}
	if l.Archive != "" {
		if err := sources(l.Archive); err != nil {
			return "", err
		}
	}
	for _, f := range l.Files {
		if _, err := fmt.Fprintf(h, "%q %q %q %t %o\n", f.Path, f.Link, f.Content, f.Directory, f.Mode); err != nil {
			return "", err
		}
		if f.Source != "" {
			if err := sources(f.Source); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// write writes the layer as an uncompressed archive. The owner is root. Times are omitted, so that builds are
// reproducible.
func (l Layer) write(w io.Writer) error {
	if l.Archive != "" {
		return copyFile(w, l.Archive)
	}
	t := &archive{Writer: tar.NewWriter(w), seen: map[string]bool{}}
	files := slices.Clone(l.Files)
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range files {
		if err := t.add(f); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return t.Close()
}

type archive struct {
	*tar.Writer
	seen map[string]bool // directories
}

func (a *archive) add(f File) error {
	name := strings.TrimPrefix(path.Clean(f.Path), "/")
	if name == "" || name == "." || strings.HasPrefix(name, "..") {
		return errors.New("this is not a path below the root directory")
	}
	if err := a.directory(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := int64(f.Mode.Perm())
	if f.Mode&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	switch {
	case f.Directory && mode == 0:
		return a.directory(name, 0o755)
	case f.Directory:
		return a.directory(name, mode)
	case f.Link != "":
		return a.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: f.Link, Mode: 0o777})
	case f.Source != "":
		return a.source(name, f)
	}
	if mode == 0 {
		mode = 0o644
	}
	if err := a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(f.Content))}); err != nil {
		return err
	}
	_, err := io.Copy(a, bytes.NewReader(f.Content))
	return err
}

func (a *archive) directory(name string, mode int64) error {
	if name == "." || a.seen[name] {
		return nil
	}
	if err := a.directory(path.Dir(name), 0o755); err != nil {
		return err
	}
	a.seen[name] = true
	return a.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}

func (a *archive) source(name string, f File) error {
	info, err := os.Stat(f.Source)
	if err != nil {
		return err
	}
	mode := int64(info.Mode().Perm())
	if f.Mode&fs.ModeSetuid != 0 {
		mode |= 0o4000
	}
	if err := a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	return copyFile(a, f.Source)
}

func copyFile(w io.Writer, source string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	_, err = io.Copy(w, f)
	return err
}

// blob is a layer in an uncompressed file. It stays on this machine, where compression costs more than it saves.
type blob struct {
	file   string
	digest v1.Hash
	size   int64
}

var _ v1.Layer = blob{}

// Digest returns the digest of the transferred bytes.
func (b blob) Digest() (v1.Hash, error) { return b.digest, nil }

// DiffID returns the digest of the archive.
func (b blob) DiffID() (v1.Hash, error) { return b.digest, nil }

// Compressed opens the transferred bytes.
func (b blob) Compressed() (io.ReadCloser, error) { return os.Open(b.file) }

// Uncompressed opens the archive.
func (b blob) Uncompressed() (io.ReadCloser, error) { return os.Open(b.file) }

// Size returns the number of bytes.
func (b blob) Size() (int64, error) { return b.size, nil }

// MediaType returns the media type of an uncompressed layer.
func (b blob) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }
