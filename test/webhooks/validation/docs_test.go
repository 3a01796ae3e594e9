package validation

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/pages"
)

// TestTranscriptOfTheDocs runs the commands of docs/validating-webhooks.md and compares their output with the page.
func TestTranscriptOfTheDocs(t *testing.T) {
	f := newFixture(t)
	f.create(f.object("Worker", "pool-a", validSpecs["Worker"]))
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	content, err := os.ReadFile(filepath.Join(root, "docs", "validating-webhooks.md"))
	kit.Must(t, err)
	page := strings.Join(strings.Fields(string(content)), " ")
	kubectl := filepath.Join(root, "bin", "kubectl")
	for _, block := range pages.Blocks(t, "docs/validating-webhooks.md") {
		for _, line := range block.Commands {
			arguments := append([]string{"--kubeconfig", filepath.Join(shared.Get(t).Dir(), "kubeconfig"), "-n", f.namespace}, strings.Fields(line)[1:]...)
			output, _ := exec.CommandContext(t.Context(), kubectl, arguments...).CombinedOutput()
			said := strings.ReplaceAll(strings.Join(strings.Fields(string(output)), " "), f.namespace, "shoot--foo--bar")
			if !strings.Contains(page, "$ "+line+" "+said) {
				t.Errorf("$ %s\n%s", line, said)
			}
		}
	}
}
