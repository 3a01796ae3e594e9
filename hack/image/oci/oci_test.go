package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func program(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func spec(source string) Spec {
	return Spec{Reference: "trellis.local/program:" + ContentTag, Entrypoint: []string{"/program"}, User: "65532:65532", Layers: []Layer{{Files: []File{
		{Path: "/program", Source: source}, {Path: "/etc/passwd", Content: []byte("root")}, {Path: "/link", Link: "/program"},
		{Path: "/tmp", Directory: true, Mode: os.ModeSticky | 0o777},
	}}}}
}

func write(t *testing.T, s *Store, spec Spec) (string, bool) {
	t.Helper()
	reference, changed, err := s.Write(spec)
	if err != nil {
		t.Fatal(err)
	}
	return reference, changed
}

// TestReproducible checks that the same files always result in the same image, and other files in another one.
func TestReproducible(t *testing.T) {
	source := program(t, "one")
	first, second := open(t), open(t)
	one, changed := write(t, first, spec(source))
	if !changed || !strings.HasPrefix(one, "trellis.local/program:sha-") {
		t.Errorf("the first image is %s, changed: %t", one, changed)
	}
	if again, changed := write(t, first, spec(source)); again != one || changed {
		t.Errorf("the same image is %s, changed: %t", again, changed)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(source, later, later); err != nil {
		t.Fatal(err)
	}
	if other, _ := write(t, second, spec(source)); other != one {
		t.Errorf("another store creates %s from the same files, want %s", other, one)
	}
	if other, changed := write(t, first, spec(program(t, "two"))); other == one || !changed {
		t.Errorf("other files result in %s, changed: %t", other, changed)
	}
}

// TestArchive checks that an archive has exactly the blobs that its reader lacks.
func TestArchive(t *testing.T) {
	s := open(t)
	reference, _ := write(t, s, spec(program(t, "one")))
	names := func(has func(string) bool) []string {
		var archive bytes.Buffer
		if err := s.Archive(&archive, []string{reference}, has); err != nil {
			t.Fatal(err)
		}
		var names []string
		for reader := tar.NewReader(&archive); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return names
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, header.Name)
		}
	}
	all := names(func(string) bool { return false })
	if len(all) != 5 || all[0] != "oci-layout" || all[1] != "index.json" {
		t.Errorf("the archive has %v, want the index, the manifest, the configuration and one layer", all)
	}
	if rest := names(func(digest string) bool { return strings.HasSuffix(all[4], strings.TrimPrefix(digest, "sha256:")) }); len(rest) != 4 {
		t.Errorf("without the layer, the archive has %v", rest)
	}
	if err := s.Archive(io.Discard, []string{"trellis.local/missing:v1"}, nil); err == nil {
		t.Error("got no error for a missing image")
	}
}

// TestRegistry checks that announced images can be pulled, and that removed images no longer exist.
func TestRegistry(t *testing.T) {
	s := open(t)
	server := httptest.NewServer(s.Registry())
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	reference, _ := write(t, s, spec(program(t, "one")))
	if err := s.Announce(t.Context(), address, []string{reference}); err != nil {
		t.Fatal(err)
	}
	parsed, err := name.ParseReference(address+"/"+strings.TrimPrefix(reference, "trellis.local/"), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(parsed)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := pulled.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the image has %d layers: %v", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if bytes, err := io.ReadAll(content); err != nil || len(bytes) == 0 {
		t.Errorf("the layer has %d bytes: %v", len(bytes), err)
	}
	if err := s.Remove(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if images, err := s.Images(); err != nil || len(images) != 0 {
		t.Errorf("these images remain: %v, error %v", images, err)
	}
	if reference, changed := write(t, s, spec(program(t, "one"))); !changed || reference == "" {
		t.Error("a removed image cannot be created again")
	}
}

// TestSetuid checks the permissions of a program that runs as root, and the command of an image.
func TestSetuid(t *testing.T) {
	s := open(t)
	reference, _ := write(t, s, Spec{Reference: "trellis.local/program:v1", Command: []string{"/program"}, Layers: []Layer{{Files: []File{
		{Path: "/program", Source: program(t, "one"), Mode: os.ModeSetuid},
	}}}})
	image, err := s.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	if file, err := image.ConfigFile(); err != nil || len(file.Config.Cmd) != 1 {
		t.Errorf("the configuration is %+v, error %v", file, err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if header, err := tar.NewReader(content).Next(); err != nil || header.Mode != 0o4755 {
		t.Errorf("the entry is %+v, error %v", header, err)
	}
}

func TestInvalidPaths(t *testing.T) {
	for _, path := range []string{"", "/", "../outside"} {
		_, _, err := open(t).Write(Spec{Reference: "trellis.local/a:v1", Layers: []Layer{{Files: []File{{Path: path}}}}})
		if err == nil || !strings.Contains(err.Error(), "below the root") {
			t.Errorf("the path %q: %v", path, err)
		}
	}
}
