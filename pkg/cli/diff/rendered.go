package diff

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/cli/render"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// previewRendered computes what applying the ManagedResources that flows would emit would change.
func (o *options) previewRendered(ctx context.Context, c *console.Console, names []string) ([]preview.Result, error) {
	if len(names) > 0 || len(o.set) > 0 {
		return nil, errors.New("--render compares all that the flows would emit for the files of -f: specify no names, and no --set")
	}
	all, err := render.Read(c, o.Paths(), o.flow)
	if err != nil {
		return nil, err
	}
	results := make([]preview.Result, 0, len(all))
	for _, rendered := range all {
		progress := c.Begin(fmt.Sprintf("Comparing ManagedResource %s", rendered.Bundle.Key))
		result, err := o.previewOne(ctx, c, rendered)
		progress.End()
		if err != nil {
			return nil, fmt.Errorf("compare ManagedResource %s: %w", rendered.Bundle.Key, err)
		}
		results = append(results, result)
	}
	return results, nil
}

func (o *options) previewOne(ctx context.Context, c *console.Console, rendered flow.Rendered) (preview.Result, error) {
	source, err := c.Source()
	if err != nil {
		return preview.Result{}, err
	}
	name := types.NamespacedName{Namespace: rendered.Bundle.Namespace, Name: rendered.Bundle.Name}
	var mr *resourcesv1alpha1.ManagedResource
	switch found, err := source.GetManagedResource(ctx, name); {
	case err == nil:
		mr = found
	case apierrors.IsNotFound(err) && !console.HasNoKind(err):
		mr = newManagedResource(name)
	default:
		return preview.Result{}, err
	}
	mr.Spec = rendered.ManagedResource.Spec
	previewer, err := preview.NewPreviewer(c, o.Settings, mr, rendered.Secrets)
	if err != nil {
		return preview.Result{}, err
	}
	result, err := previewer.Result(ctx, mr)
	previewer.WarnOfUnasked()
	return result, err
}
