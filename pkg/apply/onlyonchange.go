package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// withOnlyOnChange returns the task with the fields that are sent only with a change, if it is one: the manifest has
// changed, or the correction changes the object's generation. A dry run determines the latter before anything is
// written. Otherwise, the correction without these fields would be the last write if the process ended right after it.
func withOnlyOnChange(ctx context.Context, resource metadata.ResourceInterface, task Task) (_ Task, included bool, err error) {
	if task.Changed == nil {
		return task, false, nil
	}
	if !task.Revised {
		if included, err = changesGeneration(ctx, resource, task); err != nil || !included {
			return task, false, err
		}
	}
	task.Body = task.Changed
	return task, true, nil
}

// changesGeneration reports whether applying an existing object changes its generation. It uses a dry run.
func changesGeneration(ctx context.Context, resource metadata.ResourceInterface, task Task) (bool, error) {
	before, err := resource.Get(ctx, task.Name, metav1.GetOptions{}) // the observation of a watch may be older
	if err != nil {
		return false, err
	}
	body := object.Require(task.Body, "uid", string(task.Live.UID))
	after, err := resource.Patch(ctx, task.Name, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: resourcesv1alpha1.FieldManager, Force: ptr.To(true), DryRun: []string{metav1.DryRunAll},
	})
	if err != nil {
		return false, err
	}
	return after.Generation != before.Generation, nil
}
