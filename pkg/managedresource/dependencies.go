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

// lookup returns a ManagedResource, nil if there is none.
type lookup func(types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error)

// findGate finds out what the changes of this pass have to wait for. If the inputs are the applied ones, there is nothing to hold. The operation
// "reconcile" opens the gate, so that a repair need not wait for a dependency that it repairs.
func (p *pass) findGate(ctx context.Context, in input) (gate, error) {
	if p.asked {
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

// gatesOf returns the dependencies that gate the changes of a ManagedResource now: what is for the creation counts until all was applied
// once.
func gatesOf(mr *resourcesv1alpha1.ManagedResource) []resourcesv1alpha1.Dependency {
	created := mr.Status.SecretsDataChecksum != nil
	return slices.DeleteFunc(slices.Clone(mr.Spec.DependsOn), func(dependency resourcesv1alpha1.Dependency) bool {
		return created && dependency.For == resourcesv1alpha1.ForCreation
	})
}

// gateNamesOf returns the names of gatesOf.
func gateNamesOf(mr *resourcesv1alpha1.ManagedResource) []types.NamespacedName {
	var names []types.NamespacedName
	for _, dependency := range gatesOf(mr) {
		names = append(names, dependency.NameFrom(mr.Namespace))
	}
	return names
}

// gateOf returns what keeps the changes of a ManagedResource waiting.
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
		// It is said again as long as it is all that is said: the next look has no other sign that this one has closed the cycle.
		said := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied).Message
		found.closedHere = mr.Status.ObservedGeneration != mr.Generation || said == found.why()
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

// cycleOf returns the path of dependencies that leads from a ManagedResource back to it, nil if it is not part of a cycle.
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

// notReady says why a dependency has not reached what is waited for; empty if it has. It names reasons and no messages, which change
// often: each waiting ManagedResource would be written with each of them.
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
	const noCondition = "no condition says so"
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

// readiness says why a ManagedResource has not reached each of what others may wait for.
func readiness(mr *resourcesv1alpha1.ManagedResource) [3]string {
	return [3]string{
		notReady(mr, resourcesv1alpha1.UntilApplied), notReady(mr, resourcesv1alpha1.UntilHealthy), notReady(mr, resourcesv1alpha1.UntilRolledOut),
	}
}

func joinNames(names []types.NamespacedName) string { return strings.Join(namesOf(names), " → ") }

// namesOf returns names as texts.
func namesOf(names []types.NamespacedName) []string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, name.String())
	}
	return texts
}

// gate says what keeps the changes of a ManagedResource waiting. The zero value is open: nothing does.
//
// It gates changes, and not objects: what is applied is kept as it is, whatever becomes of a dependency. The manifests that were
// applied may be gone, as Secrets can be overwritten, so this goes object by object: an object whose manifest is the one that was
// applied is kept up, all others are left as they are until the gate opens.
type gate struct {
	// cycle is the path of dependencies that leads back to the ManagedResource; nil if nothing does.
	cycle []types.NamespacedName
	// waits say which dependencies are not ready, sorted.
	waits []string
	// closedHere is set if a change of the ManagedResource itself has closed the cycle, which is reported even if no object changes.
	closedHere bool
}

func (g gate) open() bool { return len(g.cycle) == 0 && len(g.waits) == 0 }

// holds reports whether a change has to wait until the gate opens. Applied is the digest of the manifest that was applied last, empty if
// none was. The change of an object that is in no manifest any more has no manifest.
func (g gate) holds(change change, applied string) bool {
	switch {
	case g.open(), change.action == actionSkip:
		return false
	case change.manifest != nil:
		return applied == "" || applied != change.manifest.Digest
	}
	// What is gone is gone. What another ManagedResource gets stays as it is, and that one may be a dependency.
	return change.action == actionDelete || change.action == actionRelease
}

// hold has the changes wait that have to.
func (g gate) hold(changes []change, recorded inventory) {
	for i := range changes {
		if c := &changes[i]; g.holds(*c, sentDigest(recorded[c.Key()])) {
			*c = change{Ref: c.Ref, action: actionHold, reason: g.why(), manifest: c.manifest, observation: c.observation}
		}
	}
}

// why says what has to happen before the gate opens.
func (g gate) why() string {
	if len(g.cycle) > 0 {
		return "ManagedResources wait for each other: " + joinNames(g.cycle) + ": remove one of these dependencies"
	}
	return strings.Join(g.waits, "; ")
}

// verdict returns what ResourcesApplied says while changes wait; nil if none does, and there is nothing else to be said.
func (g gate) verdict(held []change, text string) *resourcesv1alpha1.Statement {
	switch {
	case len(g.cycle) > 0 && (len(held) > 0 || g.closedHere):
		return &resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionFalse, Reason: resourcesv1alpha1.ReasonDependencyCycle, Message: text}
	case len(held) > 0:
		return &resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionProgressing, Reason: resourcesv1alpha1.ReasonDependencyNotReady, Message: text}
	}
	return nil
}

// shortChecksum is how many characters of a checksum are shown, which is enough to distinguish two of them.
const shortChecksum = 12

// section says which changes wait for what. Revision names the inputs that they come from.
func (g gate) section(held []change, revision string) string {
	if len(held) == 0 {
		if g.closedHere {
			return g.why()
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
	return conditiontext.Stable(fmt.Sprintf("Waiting: %s. Until then %s waits, and what is applied is kept: %s", g.why(), revision, strings.Join(parts, ", ")))
}

// revisionOf names the inputs of a pass.
func (p *pass) revisionOf(in input) string {
	return fmt.Sprintf("the change of generation %d with the manifests of checksum %.*s", p.mr.Generation, shortChecksum, in.checksum)
}

// recordable returns the manifests whose objects belong in the inventory while changes wait. These are the ones whose objects exist: their
// present owner keeps them until they are in this inventory, and may be a dependency that goes.
func (p *pass) recordable(ctx context.Context, in input) []object.Manifest {
	added := slices.DeleteFunc(slices.Clone(in.manifests), func(manifest object.Manifest) bool { return in.recorded.has(manifest.Key()) })
	states := p.Live.Read(ctx, refsOf(added))
	return slices.DeleteFunc(added, func(manifest object.Manifest) bool { return states[manifest.Key()].Presence != live.Present })
}

// dependencyNames returns what a ManagedResource depends on, for the index.
func dependencyNames(obj client.Object) []string {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	return namesOf(mr.Dependencies())
}

// dependingOn returns the ManagedResources that depend on one.
func (r *Reconciler) dependingOn(ctx context.Context, dependency client.Object) []reconcile.Request {
	names, err := r.dependents(ctx, client.ObjectKeyFromObject(dependency))
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the ManagedResources that depend on one")
	}
	return requestsFor(names)
}

// hasDependents reports whether another ManagedResource depends on this one. It errs on the side of caution.
func (p *pass) hasDependents(ctx context.Context) bool {
	names, err := p.dependents(ctx, p.self.Owner)
	return err != nil || len(names) > 0
}

// dependents returns the ManagedResources that depend on one.
func (r *Reconciler) dependents(ctx context.Context, name types.NamespacedName) ([]types.NamespacedName, error) {
	return r.indexed(ctx, resourcesv1alpha1.DependencyIndex, name.String())
}

// readinessChange lets through what may end the wait of those that depend on a ManagedResource.
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
