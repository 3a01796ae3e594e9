package units

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// TestFallback runs the commands of the unit Fallback with the programs in a temporary directory.
func TestFallback(t *testing.T) {
	commands := regexp.MustCompile(`ExecStart=/bin/sh -c '([^']*)'`).FindAllStringSubmatch(Fallback(), -1)
	if len(commands) != 2 || !strings.Contains(Agent(), "OnFailure="+paths.FallbackUnit) {
		t.Fatalf("the units are\n%s\n%s", Agent(), Fallback())
	}
	for name, test := range map[string]struct{ before, after map[string]string }{
		"a new program": {
			map[string]string{paths.Agent: "new", paths.Previous: "old"}, map[string]string{paths.Agent: "old", paths.Refused: "new"},
		},
		"the program of the beginning": {map[string]string{paths.Agent: "only"}, map[string]string{paths.Agent: "only"}},
		"stopped between both renames": {map[string]string{paths.Refused: "new", paths.Previous: "old"}, map[string]string{paths.Agent: "old", paths.Refused: "new"}},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, paths.Binaries), 0o755); err != nil {
			t.Fatal(err)
		}
		for path, content := range test.before {
			if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		script := strings.ReplaceAll(commands[0][1], paths.Binaries, filepath.Join(root, paths.Binaries))
		if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		for _, path := range []string{paths.Agent, paths.Previous, paths.Refused} {
			content, err := os.ReadFile(filepath.Join(root, path))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if string(content) != test.after[path] {
				t.Errorf("%s: %s is %q, want %q", name, path, content, test.after[path])
			}
		}
	}
}
