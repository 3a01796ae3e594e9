package top

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/explain"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/tree"
)

// found contains the details of one ManagedResource, which are the results of why and tree.
type found struct {
	mr          *resourcesv1alpha1.ManagedResource
	explanation *explain.Explanation
	// notes are the messages for standard error, such as those about missing permissions.
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
	captured, notes := c.Capture()
	explanation, err := explain.Explain(ctx, captured, mr, true)
	if err != nil {
		return nil, err
	}
	return &found{mr: mr, explanation: explanation, notes: notes.Lines()}, nil
}

// Print prints the details.
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
