package preview

import (
	"context"
	"encoding/json"
	"fmt"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// JSON computes what applying a ManagedResource would change, and returns the output of "-o json". It warns on the
// console's
// standard error if the result is incomplete.
func JSON(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) (json.RawMessage, error) {
	previewer, err := NewPreviewer(c, Settings{}, nil, nil)
	if err != nil {
		return nil, err
	}
	found, err := previewer.Result(ctx, mr)
	if err != nil {
		return nil, fmt.Errorf("compare ManagedResource %s: %w", state.NameOf(mr), err)
	}
	previewer.WarnOfForbiddenDryRuns()
	return json.Marshal(found)
}
