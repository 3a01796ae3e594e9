package etcd

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// choiceVersion is a choice of the bundle with the version of the operator that computed its objects. A later version of
// the operator sets it when it only goes on with a rollout.
const choiceVersion = "version"

// rollsOut reports whether the StatefulSet has not reached the state that an earlier operation requested.
func (in Inputs) rollsOut() bool {
	set := in.StatefulSet
	return set != nil && (partitionOf(set) > 0 || in.specObserved() && ptr.Deref(set.Spec.Replicas, 0) != in.Etcd.Spec.Replicas)
}

// specObserved reports whether the current spec was applied by an earlier operation.
func (in Inputs) specObserved() bool {
	return in.Etcd.Status.ObservedGeneration != nil && *in.Etcd.Status.ObservedGeneration == in.Etcd.Generation
}

// goOn returns the bundle with the next step of a rollout that an earlier operation began. Its objects are those that were
// emitted, so that neither an unrequested change of the spec nor a new version of the operator affects the rollout. found is
// false if there is no such rollout. wait describes what the step waits for, empty if it is the last one.
func (in Inputs) goOn() (bundle flow.Bundle, wait string, found bool) {
	if !in.rollsOut() || suspended(in.Etcd) {
		return flow.Bundle{}, "", false
	}
	bundle = in.bundle(BundleKey(keyOf(in.Etcd)), nil)
	bundle.Choices = map[string]string{choiceVersion: in.EmittedVersion}
	for _, object := range in.Emitted {
		if object.GetKind() == "StatefulSet" {
			var step rollout
			object, step = in.nextStep(object.DeepCopy())
			wait, found = step.wait, step.hold == ""
		}
		bundle.Objects = append(bundle.Objects, client.Object(object))
	}
	return bundle, wait, found
}

// nextStep changes an emitted StatefulSet for the next step of its rollout.
func (in Inputs) nextStep(emitted *unstructured.Unstructured) (*unstructured.Unstructured, rollout) {
	if !in.specObserved() {
		// The requested number of replicas is that of the StatefulSet. That of the spec has not been requested.
		in.Etcd = in.Etcd.DeepCopy()
		in.Etcd.Spec.Replicas = ptr.Deref(in.StatefulSet.Spec.Replicas, 0)
	}
	step := in.decideRollout(emitted.GetAnnotations()[annotationTemplate])
	spec, _ := emitted.Object["spec"].(map[string]any)
	update := map[string]any{"partition": int64(step.partition)}
	if step.all {
		update["maxUnavailable"] = int64(step.replicas)
	}
	strategy, _ := spec["updateStrategy"].(map[string]any)
	strategy["rollingUpdate"], spec["replicas"] = update, int64(step.replicas)
	return emitted, step
}
