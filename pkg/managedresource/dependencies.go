package managedresource

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// lookup returns a ManagedResource. It returns nil if the ManagedResource does not exist.
type lookup func(types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error)

// findGate returns the gate for the changes of this pass. It is open if the inputs are the applied ones. The operation
// "reconcile" also opens it, so that a repair does not have to wait for the dependency that it repairs.
func (p *pass) findGate(ctx context.Context, in input) (gate, error) {
	if p.requested {
		return gate{}, nil
	}
	found, err := gateOf(p.mr, func(name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
		return in.owners.Other(ctx, name)
	})
	if err != nil || found.open() {
		return gate{}, err
	}
	inputs, err := p.inputs(ctx, in.secrets, in.scalers, slices.Collect(maps.Keys(in.recorded)))
	if err != nil || inputs == p.mr.Status.AppliedInputs {
		return gate{}, err
	}
	return found, nil
}

// gatesOf returns the dependencies that currently gate the changes of a ManagedResource. Dependencies for the creation
// count until all objects were sent once, successfully or not.
func gatesOf(mr *resourcesv1alpha1.ManagedResource) []resourcesv1alpha1.Dependency {
	created := mr.Status.SecretsDataChecksum != nil
	return slices.DeleteFunc(slices.Clone(mr.Spec.DependsOn), func(dependency resourcesv1alpha1.Dependency) bool {
		return created && dependency.For == resourcesv1alpha1.ForCreation
	})
}

// gateNamesOf returns the names of the dependencies that gatesOf returns.
func gateNamesOf(mr *resourcesv1alpha1.ManagedResource) []types.NamespacedName {
	var names []types.NamespacedName
	for _, dependency := range gatesOf(mr) {
		names = append(names, dependency.NameFrom(mr.Namespace))
	}
	return names
}

// gateOf returns the gate for the changes of a ManagedResource.
func gateOf(mr *resourcesv1alpha1.ManagedResource, get lookup) (gate, error) {
	gates := gatesOf(mr)
	if len(gates) == 0 {
		return gate{}, nil
	}
	cycle, err := cycleOf(mr, get)
	if err != nil {
		return gate{}, err
	}
	if cycle != nil {
		found := gate{cycle: cycle}
		// The message is repeated as long as the cycle is all that it reports. It is the only record that this ManagedResource has closed
		// the cycle.
		reported := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied).Message
		found.closedHere = mr.Status.ObservedGeneration != mr.Generation || reported == found.reason()
		return found, nil
	}
	var waits []string
	for _, edge := range gates {
		name := edge.NameFrom(mr.Namespace)
		dependency, err := get(name)
		if err != nil {
			return gate{}, err
		}
		if why := notReady(dependency, edge.Until); why != "" {
			waits = append(waits, fmt.Sprintf("ManagedResource %s %s", name, why))
		}
	}
	slices.Sort(waits)
	return gate{waits: waits}, nil
}

// cycleOf returns the path of dependencies from a ManagedResource back to itself. It is nil if the ManagedResource is
// not on a cycle.
func cycleOf(mr *resourcesv1alpha1.ManagedResource, get lookup) ([]types.NamespacedName, error) {
	self, seen := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}, map[types.NamespacedName]bool{}
	for _, name := range gateNamesOf(mr) {
		path, err := pathBack(self, name, []types.NamespacedName{self}, seen, func(name types.NamespacedName) ([]types.NamespacedName, error) {
			dependency, err := get(name)
			if dependency == nil || err != nil {
				return nil, err
			}
			return gateNamesOf(dependency), nil
		})
		if path != nil || err != nil {
			return path, err
		}
	}
	return nil, nil
}

// notReady returns why a dependency has not reached the required state. It is empty if the dependency has reached it.
// The text contains reasons of conditions, but not messages. These change often, and each change would cause a write of
// each waiting ManagedResource.
func notReady(mr *resourcesv1alpha1.ManagedResource, until resourcesv1alpha1.DependencyUntil) string {
	if mr == nil {
		return "does not exist"
	}
	if mr.DeletionTimestamp != nil {
		return "is being deleted"
	}
	conditions := mr.Status.Conditions
	applied := resourcesv1alpha1.ConditionOf(conditions, resourcesv1alpha1.ResourcesApplied)
	healthy := resourcesv1alpha1.ConditionOf(conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := resourcesv1alpha1.ConditionOf(conditions, resourcesv1alpha1.ResourcesProgressing)
	const noCondition = "no condition reports this"
	switch {
	case mr.Status.ObservedGeneration != mr.Generation:
		return fmt.Sprintf("is not applied: its generation %d has not been observed", mr.Generation)
	case applied.Status != resourcesv1alpha1.ConditionTrue:
		return "is not applied: " + cmp.Or(applied.Reason, noCondition)
	case until == resourcesv1alpha1.UntilApplied:
		return ""
	case healthy.Status != resourcesv1alpha1.ConditionTrue:
		return "is not healthy: " + cmp.Or(healthy.Reason, noCondition)
	case mr.Status.FoundUnhealthy != "" && healthy.Reason != resourcesv1alpha1.ReasonManagedResourceIgnored:
		return "is not healthy: " + mr.Status.FoundUnhealthy
	case until == resourcesv1alpha1.UntilRolledOut && progressing.Status != resourcesv1alpha1.ConditionFalse:
		return "is not rolled out: " + cmp.Or(progressing.Reason, noCondition)
	}
	return ""
}

// readiness returns the result of notReady for each state for which other ManagedResources may wait.
func readiness(mr *resourcesv1alpha1.ManagedResource) [3]string {
	return [3]string{
		notReady(mr, resourcesv1alpha1.UntilApplied),
		notReady(mr, resourcesv1alpha1.UntilHealthy),
		notReady(mr, resourcesv1alpha1.UntilRolledOut),
	}
}

func joinNames(names []types.NamespacedName) string { return strings.Join(namesOf(names), " → ") }

// namesOf returns names as strings.
func namesOf(names []types.NamespacedName) []string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, name.String())
	}
	return texts
}

// gate contains the reasons why the changes of a ManagedResource have to wait. The zero value is open.
//
// It gates changes, not objects: applied objects are kept unchanged, regardless of the state of a dependency. The
// applied manifests may no longer exist, because Secrets can be overwritten, so the decision is made per object. An
// object whose manifest is the applied one is still corrected. All other objects stay unchanged until the gate opens.
type gate struct {
	// cycle is the path of dependencies from the ManagedResource back to itself. It is nil if there is no such path.
	cycle []types.NamespacedName
	// waits describe the dependencies that are not ready, sorted.
	waits []string
	// closedHere is set if a change of this ManagedResource closed the cycle. It is then reported even if no object
	// changes.
	closedHere bool
}

func (g gate) open() bool { return len(g.cycle) == 0 && len(g.waits) == 0 }

// holds reports whether a change has to wait until the gate opens. Applied is the digest of the manifest that was last
// applied. It is empty if none was. The change of an object that is not in the manifests has no manifest.
func (g gate) holds(change change, applied string) bool {
	switch {
	case g.open(), change.action == actionSkip:
		return false
	case change.manifest != nil:
		return applied == "" || applied != change.manifest.Digest
	}
	// Objects that no longer exist can be forgotten. Objects that are handed over to another ManagedResource, which may be
	// a dependency, stay unchanged.
	return change.action == actionDelete || change.action == actionRelease
}

// hold replaces the changes that have to wait by actionHold.
func (g gate) hold(changes []change, recorded inventory) {
	for i := range changes {
		if c := &changes[i]; g.holds(*c, sentDigest(recorded[c.Key()])) {
			*c = change{Ref: c.Ref, action: actionHold, reason: g.reason(), manifest: c.manifest, observation: c.observation}
		}
	}
}

// reason returns what has to happen before the gate opens.
func (g gate) reason() string {
	if len(g.cycle) > 0 {
		return "ManagedResources wait for each other: " + joinNames(g.cycle) + ": remove one of these dependencies"
	}
	return strings.Join(g.waits, "; ")
}

// verdict returns the content of ResourcesApplied while changes wait. It is nil if no change waits and no cycle has to
// be reported.
func (g gate) verdict(held []change, text string) *resourcesv1alpha1.Statement {
	switch {
	case len(g.cycle) > 0 && (len(held) > 0 || g.closedHere):
		return &resourcesv1alpha1.Statement{
			Status: resourcesv1alpha1.ConditionFalse, Reason: resourcesv1alpha1.ReasonDependencyCycle, Message: text,
		}
	case len(held) > 0:
		return &resourcesv1alpha1.Statement{
			Status: resourcesv1alpha1.ConditionProgressing, Reason: resourcesv1alpha1.ReasonDependencyNotReady, Message: text,
		}
	}
	return nil
}

// shortChecksum is the number of characters of a checksum in messages. They are enough to distinguish two checksums.
const shortChecksum = 12

// section returns the text about the changes that wait. Revision names the inputs that they come from.
func (g gate) section(held []change, revision string) string {
	if len(held) == 0 {
		if g.closedHere {
			return g.reason()
		}
		return ""
	}
	var parts []string
	for _, kind := range []struct {
		name string
		is   func(change) bool
	}{
		{"to create", func(c change) bool { return c.manifest != nil && c.observation.UID == "" }},
		{"to update", func(c change) bool { return c.manifest != nil && c.observation.UID != "" }},
		{"to remove", func(c change) bool { return c.manifest == nil }},
	} {
		if of := slices.DeleteFunc(slices.Clone(held), func(c change) bool { return !kind.is(c) }); len(of) > 0 {
			parts = append(parts, kind.name+" "+names(of))
		}
	}
	return conditiontext.Stable(fmt.Sprintf("Waiting: %s. Until then %s waits, and what is applied is kept: %s",
		g.reason(), revision, strings.Join(parts, ", ")))
}

// revisionOf names the inputs of a pass.
func (p *pass) revisionOf(in input) string {
	return fmt.Sprintf("the change of generation %d with the manifests of checksum %.*s", p.mr.Generation, shortChecksum, in.checksum)
}

// recordable returns the manifests whose objects are recorded while changes wait. These are the existing objects: their
// current owner keeps them until they are in this inventory, and may be a dependency that is deleted.
func (p *pass) recordable(ctx context.Context, in input) []object.Manifest {
	added := slices.DeleteFunc(slices.Clone(in.manifests), func(manifest object.Manifest) bool { return in.recorded.has(manifest.Key()) })
	states := p.Live.Read(ctx, refsOf(added))
	return slices.DeleteFunc(added, func(manifest object.Manifest) bool { return states[manifest.Key()].Presence != live.Present })
}

// dependencyNames returns the names of the dependencies of a ManagedResource, for the index.
func dependencyNames(obj client.Object) []string {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	return namesOf(mr.Dependencies())
}

// dependingOn returns requests for the dependents of a ManagedResource.
func (r *Reconciler) dependingOn(ctx context.Context, dependency client.Object) []reconcile.Request {
	names, err := r.dependents(ctx, client.ObjectKeyFromObject(dependency))
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the dependents of a ManagedResource",
			"dependency", client.ObjectKeyFromObject(dependency))
	}
	return requestsFor(names)
}

// hasDependents reports whether another ManagedResource depends on this one. It returns true if this cannot be
// determined.
func (p *pass) hasDependents(ctx context.Context) bool {
	names, err := p.dependents(ctx, p.self.Owner)
	return err != nil || len(names) > 0
}

// dependents returns the ManagedResources that depend on a ManagedResource.
func (r *Reconciler) dependents(ctx context.Context, name types.NamespacedName) ([]types.NamespacedName, error) {
	return r.indexed(ctx, resourcesv1alpha1.DependencyIndex, name.String())
}

// readinessChange selects changes of a ManagedResource that may end the wait of its dependents.
func readinessChange() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isManagedResource := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			return ok && isManagedResource && (readiness(before) != readiness(after) ||
				!slices.Equal(dependencyNames(before), dependencyNames(after)))
		},
	}
}
