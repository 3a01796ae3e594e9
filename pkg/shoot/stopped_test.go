package shoot

import (
	"slices"
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// serving returns ManagedResources of the Shoot that are applied and healthy, except those with the given names.
func serving(in Inputs, except ...string) flow.Live {
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{}}
	for _, key := range in.Emitted {
		mr := &resourcesv1alpha1.ManagedResource{}
		status := resourcesv1alpha1.ConditionTrue
		if slices.Contains(except, key.Name) {
			status = resourcesv1alpha1.ConditionFalse
		}
		for _, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
			mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: kind, Status: status})
		}
		live.ManagedResources[key] = mr
	}
	return live
}

// TestWithoutOperations checks what the plan of a Shoot whose operations are stopped holds, and what it does not.
func TestWithoutOperations(t *testing.T) {
	last := func(kind corev1beta1.LastOperationType) func(*Inputs) {
		return func(in *Inputs) {
			in.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: corev1beta1.LastOperationStateFailed}
			in.Shoot.Status.ObservedGeneration, in.Stopped = in.Shoot.Generation, true
		}
	}
	failed, lost := last(corev1beta1.LastOperationTypeReconcile), without(bundleAPIServer)
	for name, test := range map[string]struct {
		change []func(*Inputs)
		broken []string
		// free and held are bundles that the plan changes or not.
		free, held []string
		hold       bool
		// depends is set if the API server waits for the extension that is reconciled before it.
		depends bool
	}{
		"failed": {
			[]func(*Inputs){failed}, nil, []string{bundleAPIServer, bundleEtcdMain, bundleSystem, bundleResourceManager, "namespace"},
			[]string{prefixExtension + "first", prefixExtension + "usual", bundleInternalRecord}, false, true,
		},
		"the extension before the API server has failed": {
			[]func(*Inputs){failed}, []string{prefixExtension + "first"}, []string{bundleAPIServer}, []string{prefixExtension + "first"}, false, false,
		},
		"a lost bundle": {
			[]func(*Inputs){failed, lost}, nil, []string{bundleAPIServer}, nil, false, true,
		},
		"an extension is removed": {
			[]func(*Inputs){failed, func(in *Inputs) { in.Shoot.Spec.Extensions = in.Shoot.Spec.Extensions[:0] }}, nil,
			[]string{bundleAPIServer}, []string{prefixExtension + "first", prefixExtension + "usual"}, false, false,
		},
		"an extension is refused": {
			[]func(*Inputs){failed, func(in *Inputs) { in.Registrations = []corev1beta1.ControllerRegistration{registered("x", "usual")} }}, nil,
			[]string{bundleAPIServer}, []string{prefixExtension + "usual"}, false, false,
		},
		"a new specification": {
			[]func(*Inputs){failed, func(in *Inputs) { in.Shoot.Generation++; in.ClusterOf = in.generation() }}, nil, nil, nil, true, true,
		},
		"a creation has failed": {
			[]func(*Inputs){last(corev1beta1.LastOperationTypeCreate), lost}, []string{prefixExtension + "first"},
			[]string{bundleEtcdMain}, []string{bundleAPIServer, prefixExtension + "first"}, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := extendedUp(t, test.change...)
			made, err := Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			plan := in.withoutOperations(made, serving(in, test.broken...))
			if err := plan.Validate(); err != nil {
				t.Fatal(err)
			}
			if plan.AtOnce || plan.Window == nil || plan.Window.Open || len(plan.Tasks) > 0 || (plan.Hold != "") != test.hold {
				t.Errorf("at once: %t, window %+v, tasks %v, hold %q", plan.AtOnce, plan.Window, plan.Tasks, plan.Hold)
			}
			var held []string
			for _, wait := range plan.Waits {
				for _, key := range wait.Holds {
					held = append(held, key.Name)
				}
			}
			for _, bundle := range plan.Bundles {
				if bundle.Name == bundleAPIServer && test.depends != slices.ContainsFunc(bundle.Spec.DependsOn, func(need resourcesv1alpha1.Dependency) bool {
					return need.Name == prefixExtension+"first"
				}) {
					t.Errorf("the API server depends on %+v", bundle.Spec.DependsOn)
				}
			}
			for _, name := range test.free {
				key := in.key(name)
				if slices.Contains(held, key.Name) || !slices.ContainsFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key }) {
					t.Errorf("%s is held or missing", name)
				}
			}
			for _, name := range test.held {
				if !slices.Contains(held, name) {
					t.Errorf("%s is not held, only %s", name, strings.Join(held, ", "))
				}
			}
			for _, tombstone := range plan.Tombstones {
				if isOperation(tombstone.Name) {
					t.Errorf("%s is deleted", tombstone.Name)
				}
			}
		})
	}
}

// without removes a bundle from the existing ones.
func without(lost string) func(*Inputs) {
	return func(in *Inputs) {
		in.Emitted = slices.DeleteFunc(in.Emitted, func(key flow.Key) bool { return key.Name == lost })
	}
}
