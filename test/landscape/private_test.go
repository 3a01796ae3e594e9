package landscape

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLimitsFileIsPrivate checks that only root can write to the directory of a file that root writes. In a directory that all
// users can write to, a link could lead to any other file.
func TestLimitsFileIsPrivate(t *testing.T) {
	info, err := os.Stat(filepath.Dir(limitsFile))
	if err != nil {
		t.Skipf("this machine has no directory for %s: %v", limitsFile, err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		t.Errorf("others can write to the directory of %s: %s", limitsFile, info.Mode())
	}
}
