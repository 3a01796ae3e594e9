package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCommandsAreRun checks that each command on a page is run by the test in the inventory, or that the inventory
// has a reason not to run it.
func TestCommandsAreRun(t *testing.T) {
	tests, all := testFiles(t), All(t)
	run, left := 0, map[string]int{}
	for _, page := range all {
		commands := Inline(t, page)
		for _, block := range Blocks(t, page) {
			commands = append(commands, block.Commands...)
		}
		before := run
		for _, command := range commands {
			switch why := Why(command); {
			case why != "":
				left[why]++
			case strings.TrimSpace(command) == "" || strings.HasPrefix(command, "#"):
			case RunBy[page] == "":
				t.Errorf("%s: no test runs %q", page, command)
			default:
				run++
			}
		}
		if test := RunBy[page]; test != "" && (run == before || !strings.Contains(tests, "\nfunc "+test+"(")) {
			t.Errorf("%s: test %s does not exist, or the page has no command that it runs", page, test)
		}
	}
	for page := range RunBy {
		if !slices.Contains(all, page) {
			t.Errorf("page %s does not exist", page)
		}
	}
	if run < 80 {
		t.Errorf("only %d commands are run", run)
	}
	t.Logf("%d lines of commands are run; not run: %v", run, left)
}

// testFiles returns the content of all tests on a control plane.
func testFiles(t *testing.T) (content string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		content += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestBlocks(t *testing.T) {
	blocks := blocksIn("# A\n```yaml\n# no\n```\n## B\n```sh\n# yes\none \\\n  two\n```\n  ```console\n  $ three\n  said\n  ```\n")
	if len(blocks) != 2 || blocks[0].Section != "B" || len(blocks[0].Commands) != 3 || !slices.Equal(blocks[1].Commands, []string{"three"}) {
		t.Errorf("found %+v", blocks)
	}
	commands := inlineIn("`kubectl mr why`, `kubectl get\npods -A`, `helm upgrade`\n```sh\n`kubectl get no -A`\n```\n`a | b`, `kubectl get x \\| wc`")
	if !slices.Equal(commands, []string{"kubectl get pods -A", "kubectl get x | wc"}) {
		t.Errorf("found %q", commands)
	}
}
