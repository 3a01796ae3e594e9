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
