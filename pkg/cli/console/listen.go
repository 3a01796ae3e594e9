package console

import (
	"bytes"
	"strings"
	"sync"

	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// Notes collects what is said on standard error, by several at once. The zero value is ready for use.
type Notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Listening returns a console that says to the notes what it would say on standard error, such as what may not be read.
func (c *Console) Listening() (*Console, *Notes) {
	notes := &Notes{}
	listening := *c
	listening.Err = screen.Screen{Writer: notes}
	return &listening, notes
}

// Write appends a text. It never fails.
func (n *Notes) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(text)
}

// Lines returns what was said, without what says that something goes on.
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
