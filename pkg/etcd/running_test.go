package etcd

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// emittedBy returns the objects of a plan as they are read from their Secrets.
func emittedBy(t *testing.T, in Inputs) []*unstructured.Unstructured {
	t.Helper()
	result, err := Plan(in)
	if err != nil || len(result.Bundles) != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	var all []*unstructured.Unstructured
	for _, object := range result.Bundles[0].Objects {
		kind, err := apiutil.GVKForObject(object, scheme.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(object)
		read := &unstructured.Unstructured{}
		if err == nil {
			err = json.Unmarshal(text, &read.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		read.SetGroupVersionKind(kind)
		all = append(all, read)
	}
	return all
}

// emittedSet returns the StatefulSet of a plan, and whether the plan may write it.
func emittedSet(t *testing.T, result Result) (*appsv1.StatefulSet, bool) {
	t.Helper()
	for _, wait := range result.Waits {
		if len(wait.Holds) > 0 {
			return nil, false
		}
	}
	for _, bundle := range result.Bundles {
		for _, object := range bundle.Objects {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			set := &appsv1.StatefulSet{}
			if (&unstructured.Unstructured{Object: content}).GetKind() != "StatefulSet" {
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, set); err != nil {
				t.Fatal(err)
			}
			return set, true
		}
	}
	return nil, false
}

// rollingOut returns the inputs of an operator v2 in the middle of a rollout that v1 began.
func rollingOut(t *testing.T, change ...func(*appsv1.StatefulSet)) Inputs {
	t.Helper()
	etcd := sample(3)
	etcd.Status.ObservedGeneration = ptr.To(etcd.Generation)
	in := inputs(etcd, healthy(0), healthy(1), healthy(2))
	in.StatefulSet = set(t, inputs(sample(3), in.Members...), change...)
	in.EmittedVersion = in.Version
	in.Emitted = emittedBy(t, in)
	in.Version, in.Image = "v2", "registry.example.org/etcd-member:v2"
	return in
}

// TestRolloutGoesOn checks that a rollout in progress is completed with its own template, whatever has changed since then,
// and that only then the new template is held.
func TestRolloutGoesOn(t *testing.T) {
	for name, change := range map[string]func(*Inputs){
		"upgrade of the operator": func(*Inputs) {},
		"change of the spec": func(in *Inputs) {
			in.Etcd.Generation, in.Etcd.Spec.Replicas = 2, 5
			in.Etcd.Spec.ETCD.Image = ptr.To("x:v3")
		},
		"invalid spec": func(in *Inputs) { in.Etcd.Generation, in.Etcd.Spec.Replicas = 2, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			in := rollingOut(t, partition(2), updatedPods(1))
			change(&in)
			for _, want := range []int32{1, 0} {
				result, err := Plan(in)
				if err != nil {
					t.Fatal(err)
				}
				next, written := emittedSet(t, result)
				if !written {
					t.Fatalf("the rollout is held: %+v", result.Waits)
				}
				if image := next.Spec.Template.Spec.Containers[0].Image; image != "registry.example.org/etcd-member:v1" {
					t.Errorf("the image of members becomes %s", image)
				}
				if got := partitionOf(next); got != want || *next.Spec.Replicas != 3 {
					t.Fatalf("the partition is %d of %d, want %d", got, *next.Spec.Replicas, want)
				}
				if got := result.Bundles[0].Choices[choiceVersion]; got != "v1" {
					t.Errorf("the objects are said to be computed by version %q", got)
				}
				in.StatefulSet.Spec.UpdateStrategy.RollingUpdate.Partition, in.StatefulSet.Status.UpdatedReplicas = &want, 3-want
			}
			result, err := Plan(in)
			if _, written := emittedSet(t, result); err != nil || written {
				t.Errorf("after the rollout: %+v, %v", result.Waits, err)
			}
		})
	}
}

// TestGrowthGoesOn checks that the other members join after an upgrade of the operator.
func TestGrowthGoesOn(t *testing.T) {
	in := rollingOut(t, replicas(1), readyPods(1))
	in.Members = in.Members[:1]
	result, err := Plan(in)
	if next, written := emittedSet(t, result); err != nil || !written || *next.Spec.Replicas != 3 {
		t.Errorf("%+v, %v, %v", next, result.Waits, err)
	}
}

// TestRolloutStops checks the cases in which a rollout does not go on.
func TestRolloutStops(t *testing.T) {
	for name, change := range map[string]func(*Inputs){
		"suspended":                        func(in *Inputs) { in.Etcd.Annotations = map[string]string{AnnotationSuspend: "true"} },
		"the emitted objects were deleted": func(in *Inputs) { in.Emitted = nil },
	} {
		in := rollingOut(t, partition(2), updatedPods(1))
		change(&in)
		result, err := Plan(in)
		if _, written := emittedSet(t, result); err != nil || written {
			t.Errorf("%s: %+v, %v", name, result.Waits, err)
		}
	}
	in := rollingOut(t, partition(2), updatedPods(1))
	in.Members = []lease.Member{healthy(0, withState(lease.ReasonUnhealthy)), healthy(1), healthy(2)}
	result, err := Plan(in)
	if next, written := emittedSet(t, result); err != nil || !written || partitionOf(next) != 2 {
		t.Errorf("while a member is unhealthy: %+v, %v", result.Waits, err)
	}
}

// TestRolloutGoesOnUnchanged checks that a step that waits is emitted once, whatever encodes and decodes its objects.
func TestRolloutGoesOnUnchanged(t *testing.T) {
	in := rollingOut(t, partition(2), updatedPods(0))
	var digests []string
	for range 3 {
		result, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		rendered, _, err := flow.RenderPlan(OwnerOf(in.Etcd), result.Plan, flow.Rules{Scheme: scheme.Scheme, Version: "v2"})
		if err != nil || len(rendered) != 1 {
			t.Fatalf("%v, %v", rendered, err)
		}
		if in.Emitted, err = rendered[0].Contents(); err != nil {
			t.Fatal(err)
		}
		digests = append(digests, rendered[0].ManagedResource.Annotations[flow.AnnotationDigest])
	}
	if digests[0] == "" || digests[1] != digests[0] || digests[2] != digests[0] {
		t.Errorf("the content changes: %v", digests)
	}
}
