package diff

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/cli/render"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// previewRendered computes what would change if flows emitted their plans, including deletions.
func (o *options) previewRendered(ctx context.Context, c *console.Console, names []string) ([]preview.Result, error) {
	if len(names) > 0 || len(o.set) > 0 {
		return nil, errors.New("--render compares everything that the flows would emit for the files of -f: specify no names, and no --set")
	}
	source, err := c.Source()
	if err != nil {
		return nil, err
	}
	all, err := render.Read(c, o.Paths(), o.flow, func(name string, declaration *unstructured.Unstructured) ([]flow.Key, error) {
		return flow.EmittedFor(ctx, source, name, declaration)
	})
	if err != nil {
		return nil, err
	}
	results := make([]preview.Result, 0, len(all.Bundles)+len(all.Tombstones))
	compare := func(key flow.Key, one func() (*preview.Result, error)) error {
		progress := c.Begin(fmt.Sprintf("Comparing ManagedResource %s", key))
		defer progress.End()
		result, err := one()
		if err != nil {
			return fmt.Errorf("compare ManagedResource %s: %w", key, err)
		}
		if result != nil {
			results = append(results, *result)
		}
		return nil
	}
	for _, rendered := range all.Bundles {
		if err := compare(rendered.Bundle.Key, func() (*preview.Result, error) { return o.previewOne(ctx, c, source, rendered) }); err != nil {
			return nil, err
		}
	}
	for _, tombstone := range all.Tombstones {
		if err := compare(tombstone.Key, func() (*preview.Result, error) { return o.previewDeletion(ctx, c, source, tombstone) }); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (o *options) previewOne(
	ctx context.Context, c *console.Console, source *console.Source, rendered flow.Rendered,
) (*preview.Result, error) {
	mr, err := find(ctx, source, rendered.Bundle.Key)
	if err != nil {
		return nil, err
	}
	if mr == nil {
		mr = newManagedResource(types.NamespacedName{Namespace: rendered.Bundle.Namespace, Name: rendered.Bundle.Name})
	}
	mr.Spec = rendered.ManagedResource.Spec
	return o.result(ctx, c, mr, rendered.Secrets)
}

// previewDeletion computes what the deletion of an existing bundle would change. The result does not contain objects
// that are
// kept. It is nil if the bundle does not exist.
func (o *options) previewDeletion(
	ctx context.Context, c *console.Console, source *console.Source, tombstone flow.Tombstone,
) (*preview.Result, error) {
	mr, err := find(ctx, source, tombstone.Key)
	if err != nil || mr == nil {
		return nil, err
	}
	if mr.DeletionTimestamp == nil {
		mr.DeletionTimestamp = &metav1.Time{Time: c.Clock.Now()}
	}
	result, err := o.result(ctx, c, mr, nil)
	if err != nil {
		return nil, err
	}
	result.Deleted = true
	return result, nil
}

func (o *options) result(
	ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource, secrets []*corev1.Secret,
) (*preview.Result, error) {
	previewer, err := preview.NewPreviewer(c, o.Settings, mr, secrets)
	if err != nil {
		return nil, err
	}
	result, err := previewer.Result(ctx, mr)
	previewer.WarnOfForbiddenDryRuns()
	return &result, err
}

// find returns a ManagedResource, or nil if it does not exist.
func find(ctx context.Context, source *console.Source, key flow.Key) (*resourcesv1alpha1.ManagedResource, error) {
	mr, err := source.GetManagedResource(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
	if apierrors.IsNotFound(err) && !console.HasNoKind(err) {
		return nil, nil
	}
	return mr, err
}
