package console

import (
	"bytes"
	"strings"
	"sync"

	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// Notes collects messages for standard error. It is safe for concurrent use. The zero value is ready for use.
type Notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Capture returns a console that collects messages for standard error in notes, such as those about missing
// permissions.
func (c *Console) Capture() (*Console, *Notes) {
	notes := &Notes{}
	captured := *c
	captured.Err = screen.Screen{Writer: notes}
	return &captured, notes
}

// Write appends a text. It never fails.
func (n *Notes) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(text)
}

// Lines returns the collected lines without progress messages, which end in "…".
func (n *Notes) Lines() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lines []string
	for line := range strings.Lines(n.text.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, "…") {
			lines = append(lines, line)
		}
	}
	return lines
}
