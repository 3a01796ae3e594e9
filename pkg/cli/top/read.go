package top

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/tree"
	"github.com/trellis-k8s/trellis/pkg/cli/why"
)

// found is what was read of one ManagedResource: what why and tree say.
type found struct {
	mr          *resourcesv1alpha1.ManagedResource
	explanation *why.Explanation
	// notes are what was said on standard error, such as what may not be read.
	notes []string
}

// read reads one ManagedResource and its objects.
func read(ctx context.Context, c *console.Console, name types.NamespacedName) (*found, error) {
	source, err := c.Source()
	if err != nil {
		return nil, err
	}
	mr, err := source.GetManagedResource(ctx, name)
	if err != nil {
		return nil, err
	}
	var said notes
	listening := *c
	listening.Err = screen.Screen{Writer: &said}
	explanation, err := why.Explain(ctx, &listening, mr)
	if err != nil {
		return nil, err
	}
	return &found{mr: mr, explanation: explanation, notes: said.lines()}, nil
}

// Print writes what was found.
func (f *found) Print(to screen.Screen, now time.Time) error {
	for _, note := range f.notes {
		if err := errors.Join(to.Paragraph("", screen.Busy, note), to.Paragraph("", screen.Plain, "")); err != nil {
			return err
		}
	}
	if err := f.explanation.Print(to, now); err != nil {
		return err
	}
	if err := to.Paragraph("", screen.Plain, ""); err != nil {
		return err
	}
	return tree.Print(to, f.mr, f.explanation.Objects, now)
}

// notes collects what is written by several at once.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends a text.
func (n *notes) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(text)
}

// lines returns what was written, without what says that something goes on.
func (n *notes) lines() []string {
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
