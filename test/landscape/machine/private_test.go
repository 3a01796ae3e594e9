package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLockIsPrivate checks that only root can write to the directory of the lock that root creates.
func TestLockIsPrivate(t *testing.T) {
	info, err := os.Stat(filepath.Dir(lock))
	if err != nil {
		t.Skipf("this machine has no directory for %s: %v", lock, err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		t.Errorf("others can write to the directory of %s: %s", lock, info.Mode())
	}
}

// TestThaw checks that frozen processes of both versions of cgroups continue, so that they can end.
func TestThaw(t *testing.T) {
	group := t.TempDir()
	below := filepath.Join(group, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"freezer.state": "FROZEN\n", "cgroup.freeze": "1\n", "cgroup.procs": "1\n"} {
		if err := os.WriteFile(filepath.Join(below, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := thaw([]string{group, filepath.Join(group, "gone")}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0", "cgroup.procs": "1\n"} {
		if got, err := os.ReadFile(filepath.Join(below, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q: %v", name, got, err)
		}
	}
}
