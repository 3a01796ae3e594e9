package shoot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// waitOperations is the wait of bundles whose change would be an operation, while operations are stopped.
const waitOperations = "operations"

// maintains reports whether the control plane is maintained although operations are stopped: certificates are renewed, and
// what was lost is restored. A control plane that was never requested, that is being deleted, that leaves its Seed, or whose Seed
// is not ready remains as it is.
func (p *pass) maintains() bool {
	if p.shoot.DeletionTimestamp != nil || p.shoot.Status.LastOperation == nil || phaseOf(p.shoot) == phaseMigrate {
		return false
	}
	input := decisionInput{shoot: p.shoot, seed: p.seed, gardenlet: p.options.Identity}
	if input.seedNotReady() != "" {
		p.Wake.In(seedAgain)
		return false
	}
	return true
}

// withoutOperations returns the plan of a Shoot whose operations are stopped. Renewed certificates and lost bundles are
// emitted. What remains as it is: the objects of extensions, changes of the Shoot that no operation has begun with, changes
// of gardenlet or of what operators declare, and the parts of an unfinished creation that do not exist yet.
func (in Inputs) withoutOperations(plan flow.Plan, live flow.Live) flow.Plan {
	plan.Tasks, plan.AtOnce, plan.Window = nil, false, &flow.Window{}
	creating := operationType(in.Shoot) == corev1beta1.LastOperationTypeCreate || in.Phase == phaseRestore
	if in.Shoot.Status.ObservedGeneration != in.Shoot.Generation {
		plan.Hold = "the operation for the new specification of the Shoot is stopped"
	}
	held := map[flow.Key]bool{}
	for _, bundle := range plan.Bundles {
		if isOperation(bundle.Name) || creating && !slices.Contains(in.Emitted, bundle.Key) {
			held[bundle.Key] = true
		}
	}
	plan.Tombstones = slices.DeleteFunc(plan.Tombstones, func(tombstone flow.Tombstone) bool {
		held[tombstone.Key] = held[tombstone.Key] || isOperation(tombstone.Name)
		return isOperation(tombstone.Name)
	})
	wait := flow.Wait{Name: waitOperations, Reason: "operations are stopped"}
	for key, isHeld := range held {
		if isHeld {
			wait.Holds = append(wait.Holds, key)
		}
	}
	slices.SortFunc(wait.Holds, flow.Key.Compare)
	plan.Waits = append(plan.Waits, wait)
	if !creating {
		in.dropDependencies(plan.Bundles, held, live)
	}
	return plan
}

// isOperation reports whether a change of a bundle is an operation of an extension.
func isOperation(name string) bool {
	return strings.HasPrefix(name, prefixExtension) || strings.HasPrefix(name, prefixRecord) || isNodeOperation(name)
}

// dropDependencies removes dependencies on held bundles that are not healthy. Otherwise the resource-manager would not apply
// a renewed certificate until the failed operation has succeeded. The programs that depend on them run already.
func (in Inputs) dropDependencies(bundles []flow.Bundle, held map[flow.Key]bool, live flow.Live) {
	for i := range bundles {
		bundles[i].Spec.DependsOn = slices.DeleteFunc(slices.Clone(bundles[i].Spec.DependsOn), func(need resourcesv1alpha1.Dependency) bool {
			key := flow.Key{Namespace: need.Namespace, Name: need.Name}
			return held[key] && !serves(flow.Result{Live: live}, key)
		})
	}
}

// withoutOperation returns the plan of a Shoot that is not reconciled because it has failed or is ignored: only the Cluster, from
// which extensions learn this. All other bundles keep their revision. It is also emitted if the Shoot is invalid. The wait
// makes the Cluster a part of the last emission, whose inputs and bundles remain recorded.
func withoutOperation(in Inputs) (flow.Plan, error) {
	plan, err := Plan(in)
	if err != nil || in.Registrations == nil || in.NamespaceExists && in.secret(constants.SecretNameGenericTokenKubeconfig) == "" {
		return flow.Plan{}, err // a part of the Cluster is not known
	}
	reduced := flow.Plan{Inputs: plan.Inputs, Program: plan.Program, Generation: plan.Generation, AtOnce: true, Deleting: true, Waits: []flow.Wait{
		{Name: waitOperations, Reason: "operations are stopped", HoldsAll: true, Repairs: []flow.Key{in.key(bundleNamespace)}},
	}}
	if !in.Deleting {
		plan = flow.Plan{}
		contents := in.contents()
		contents.Add(&plan, contents.Parts[0])
	}
	for _, bundle := range plan.Bundles {
		if bundle.Key == in.key(bundleNamespace) {
			reduced.Bundles = append(reduced.Bundles, bundle)
		}
	}
	return reduced, nil
}

// emitCluster emits only the Cluster of a Shoot that is not reconciled.
func (p *pass) emitCluster(ctx context.Context) error {
	plan, err := withoutOperation(p.in)
	if err != nil {
		return fmt.Errorf("plan the Cluster: %w", err)
	}
	_, err = p.emitter.Emit(ctx, p.in.Owner, plan)
	return err
}
