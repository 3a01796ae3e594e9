package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDirectory(t *testing.T) {
	root := t.TempDir()
	buckets := Directory(root)
	for range 2 {
		if err := buckets.Create(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "a")); err != nil || info.Mode().Perm() != directoryMode {
		t.Errorf("the directory is %v, %v", info, err)
	}
	for _, name := range []string{"x/etcd/full", "y/etcd/full"} {
		if err := os.MkdirAll(filepath.Join(root, "a", name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := buckets.DeleteEntry(t.Context(), "a", "x"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(root, "a"))
	if err != nil || len(left) != 1 || left[0].Name() != "y" {
		t.Errorf("%v, %v remains of the bucket", left, err)
	}
	for range 2 {
		if err := buckets.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("%v, %v remains of the store", left, err)
	}
}

// TestNames checks that names cannot refer to a path outside the store.
func TestNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../a", "a/b", "/a"} {
		for what, err := range map[string]error{
			"create": Directory(t.TempDir()).Create(t.Context(), name), "delete": Directory(t.TempDir()).Delete(t.Context(), name), "delete an entry": Directory(t.TempDir()).DeleteEntry(t.Context(), "a", name),
			"delete in": Directory(t.TempDir()).DeleteEntry(t.Context(), name, "a"),
		} {
			if err == nil || !strings.Contains(err.Error(), "must be a valid directory name") {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
	if err := Directory("").Create(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "--backup-directory") {
		t.Errorf("without a directory: %v", err)
	}
}
