package table

import (
	"slices"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Table is the table of contents of a flow.
type Table struct {
	// Parts are the rows, in the order of their creation.
	Parts []Part
	// Key returns the key of the bundle of a part.
	Key func(name string) flow.Key
	// Prepare sets what all bundles with objects in a cluster have, such as their class.
	Prepare func(Target, *flow.Bundle)
	// Emitted are the existing bundles.
	Emitted []flow.Key
	// Asleep is set while the owner hibernates.
	Asleep bool
	// Uncontained is why the part that contains the others does not exist yet; empty if it does, or if there is none.
	Uncontained string
	// OldCluster is why the Cluster that extensions read is outdated; empty if it is not.
	OldCluster string
	// Now is the current time. Deadline is when waits for unknown inputs become errors; zero for never.
	Now, Deadline time.Time
}

// Part returns the row with a name.
func (t Table) Part(name string) (Part, bool) {
	index := slices.IndexFunc(t.Parts, func(part Part) bool { return part.Name == name })
	if index < 0 {
		return Part{}, false
	}
	return t.Parts[index], true
}

// Emits reports whether the bundle of a part exists.
func (t Table) Emits(name string) bool { return slices.Contains(t.Emitted, t.Key(name)) }

// AddAll adds all parts to a plan.
func (t Table) AddAll(plan *flow.Plan) {
	for _, part := range t.Parts {
		t.Add(plan, part)
	}
}

// Add adds a part to a plan: as a bundle, as a tombstone if it must be deleted, or as a wait if it cannot be applied.
func (t Table) Add(plan *flow.Plan, part Part) {
	key, emitted, unknown := t.Key(part.Name), t.Emits(part.Name), t.Unknown(part)
	switch {
	case part.Unchanged, part.Absent != "" && !emitted:
	case part.Absent != "" && part.Released:
		plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Release: flow.ReleaseBundle})
	case part.Absent != "" && part.Removed:
		plan.Tombstones = append(plan.Tombstones, t.removal(part))
	case part.Absent != "":
		plan.Keeps = append(plan.Keeps, key)
	case unknown != "":
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: part.Name + "-known", Reason: unknown, Holds: []flow.Key{key}, Deadline: t.Deadline,
		})
	default:
		bundle, err := t.Bundle(part)
		if err != nil {
			plan.Waits = append(plan.Waits, flow.Wait{
				Name: part.Name + "-valid", Reason: err.Error(), Holds: []flow.Key{key},
				Deadline: t.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
			})
			return
		}
		plan.Bundles = append(plan.Bundles, bundle)
	}
}

// Unknown names the inputs of a part that are not known yet; empty if all are.
func (t Table) Unknown(part Part) string {
	unknown := part.Unknown
	if part.ReadsCluster {
		unknown = Join(unknown, t.OldCluster)
	}
	if unknown == "" && !part.Contains {
		return t.Uncontained
	}
	return unknown
}

// Bundle returns the bundle of a part. An error is one of [Part.Objects].
func (t Table) Bundle(part Part) (flow.Bundle, error) {
	objects, err := part.Objects()
	if err != nil {
		return flow.Bundle{}, err
	}
	bundle := flow.Bundle{
		Key: t.Key(part.Name), Objects: objects, Spec: resourcesv1alpha1.ManagedResourceSpec{DependsOn: t.dependencies(part)},
	}
	if after := t.deletedAfter(part); after != nil {
		bundle.DeleteAfter = t.keys(after...)
	}
	t.Prepare(part.Target, &bundle)
	if part.Adjust != nil {
		part.Adjust(&bundle)
	}
	return bundle, nil
}

// dependencies returns the dependencies of the bundle of a part.
func (t Table) dependencies(part Part) []resourcesv1alpha1.Dependency {
	var dependencies []resourcesv1alpha1.Dependency
	for _, need := range t.order(part) {
		for _, name := range need.Parts {
			if needed, found := t.Part(name); found && needed.Absent != "" {
				continue
			}
			key := t.Key(name)
			dependencies = append(dependencies, resourcesv1alpha1.Dependency{Namespace: key.Namespace, Name: key.Name, Until: need.Until})
		}
	}
	return dependencies
}

// keys returns the keys of parts. It is never nil.
func (t Table) keys(names ...string) []flow.Key {
	keys := make([]flow.Key, 0, len(names))
	for _, name := range names {
		keys = append(keys, t.Key(name))
	}
	return keys
}
