package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

var valuesBlock = regexp.MustCompile("(?s)\n```yaml\n(# values.yaml\n.*?\n)```")

// TestValuesOfTheDocs checks that the chart can be rendered with all values in docs/installation.md.
func TestValuesOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "installation.md"))
	kit.Must(t, err)
	blocks := valuesBlock.FindAllSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Errorf("found only %d blocks that begin with # values.yaml", len(blocks))
	}
	for _, block := range blocks {
		configOf(t, render(t, load(t), valuesOf(t, string(block[1]))))
	}
}
