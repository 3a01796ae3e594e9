package apply

import (
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// withReplicas returns the task with the replicas of the manifest if the object has 0 replicas and an autoscaler owns
// them that does not scale from 0. The replicas are left to the autoscaler again right after the apply. The object must
// be unchanged since it was observed, because it may have been scaled in the meantime.
func withReplicas(task Task) (_ Task, included bool, err error) {
	if task.ReplicasFromZero == nil || !task.Live.Replicas.Zero() {
		return task, false, nil
	}
	var obj map[string]any
	if err := utiljson.Unmarshal(task.Body, &obj); err != nil {
		return task, false, fmt.Errorf("decode the manifest: %w", err)
	}
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		obj["spec"] = spec
	}
	spec["replicas"] = task.ReplicasFromZero
	if task.Body, err = object.EncodeBody(obj); err != nil {
		return task, false, fmt.Errorf("encode %s: %w", task.Ref, err)
	}
	isReplicas := func(pattern fieldowner.Pattern) bool { return slices.Equal(pattern, fieldowner.Replicas()) }
	task.Preserve = slices.DeleteFunc(slices.Clone(task.Preserve), isReplicas)
	task.Stripped = slices.DeleteFunc(slices.Clone(task.Stripped), isReplicas)
	return task, true, nil
}
