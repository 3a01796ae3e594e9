package preview

import (
	"context"
	"encoding/json"
	"fmt"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// JSON finds out what applying a ManagedResource as it is would change, and returns what "-o json" writes of one. What is not taken
// into account is told on the console's standard error.
func JSON(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) (json.RawMessage, error) {
	previewer, err := NewPreviewer(c, Settings{}, nil, nil)
	if err != nil {
		return nil, err
	}
	found, err := previewer.Result(ctx, mr)
	if err != nil {
		return nil, fmt.Errorf("compare ManagedResource %s: %w", state.NameOf(mr), err)
	}
	previewer.WarnOfUnasked()
	return json.Marshal(found)
}
