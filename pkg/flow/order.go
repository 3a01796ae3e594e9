package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// edges maps each key to its predecessors.
type edges map[Key][]Key

// sorted returns the keys in topological order, predecessors first, and by name among unrelated keys. It returns an
// error that names a cycle.
func (e edges) sorted() ([]Key, error) {
	const visiting, done = 1, 2
	state := map[Key]int{}
	var order, path []Key
	var visit func(Key) error
	visit = func(key Key) error {
		before, known := e[key]
		switch {
		case !known || state[key] == done:
			return nil
		case state[key] == visiting:
			return fmt.Errorf("the bundles wait for each other: %s", joinKeys(append(path[slices.Index(path, key):], key)))
		}
		state[key] = visiting
		path = append(path, key)
		for _, next := range slices.SortedFunc(slices.Values(before), Key.Compare) {
			if err := visit(next); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		state[key] = done
		order = append(order, key)
		return nil
	}
	for _, key := range slices.SortedFunc(maps.Keys(e), Key.Compare) {
		if err := visit(key); err != nil {
			return nil, err
		}
	}
	return order, nil
}

func joinKeys(keys []Key) string {
	texts := make([]string, 0, len(keys))
	for _, key := range keys {
		texts = append(texts, key.String())
	}
	return strings.Join(texts, " → ")
}

// writeOrder returns bundles in write order: dependencies first, so that a watch shows the new generation of a
// dependency before the bundle that needs it.
func writeOrder(bundles []Bundle) ([]Bundle, error) {
	byKey, graph := map[Key]Bundle{}, edges{}
	for _, bundle := range bundles {
		byKey[bundle.Key] = bundle
		graph[bundle.Key] = dependencies(bundle.Namespace, bundle.Spec)
	}
	keys, err := graph.sorted()
	if err != nil {
		return nil, fmt.Errorf("dependsOn: %w", err)
	}
	ordered := make([]Bundle, 0, len(keys))
	for _, key := range keys {
		ordered = append(ordered, byKey[key])
	}
	return ordered, nil
}

// circle returns the path of dependencies from a bundle back to itself that would exist if it was written now, nil if there is none.
// Bundles that the plan holds keep their dependencies, and the plan may have turned these round: a Shoot that falls asleep
// stops its programs in the reverse order.
func (d *decider) circle(bundle Bundle) []Key {
	seen := map[Key]bool{}
	var back func(path []Key, needs []Key) []Key
	back = func(path, needs []Key) []Key {
		for _, next := range needs {
			if next == bundle.Key {
				return append(path, next)
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if found := back(append(slices.Clone(path), next), d.gates(next)); found != nil {
				return found
			}
		}
		return nil
	}
	return back([]Key{bundle.Key}, gatesOf(bundle.Namespace, bundle.Spec, d.live.ManagedResources[bundle.Key]))
}

// gates returns the bundles for which changes of a bundle wait after the steps so far.
func (d *decider) gates(key Key) []Key {
	mr := d.live.ManagedResources[key]
	for _, step := range d.Steps {
		if step.Key == key && step.revision != nil {
			return gatesOf(key.Namespace, step.revision.bundle.Spec, mr)
		}
	}
	if mr == nil {
		return nil
	}
	return gatesOf(key.Namespace, mr.Spec, mr)
}

// gatesOf returns the dependencies that gate changes: those for the creation do not, once all objects were sent.
func gatesOf(namespace string, spec resourcesv1alpha1.ManagedResourceSpec, mr *resourcesv1alpha1.ManagedResource) []Key {
	created := mr != nil && mr.Status.SecretsDataChecksum != nil
	spec.DependsOn = slices.DeleteFunc(slices.Clone(spec.DependsOn), func(dependency resourcesv1alpha1.Dependency) bool {
		return created && dependency.For == resourcesv1alpha1.ForCreation
	})
	return dependencies(namespace, spec)
}

// checkDeletion returns an error if bundles or tombstones cannot all be deleted because they wait for each other.
func checkDeletion(bundles []Bundle, tombstones []Tombstone) error {
	graph := edges{}
	for _, tombstone := range tombstones {
		graph[tombstone.Key] = tombstone.After
	}
	for _, bundle := range bundles {
		graph[bundle.Key] = slices.Concat(graph[bundle.Key], bundle.DeleteAfter)
	}
	explicit := map[Key]bool{}
	for _, bundle := range bundles {
		explicit[bundle.Key] = bundle.DeleteAfter != nil
	}
	for _, bundle := range bundles {
		for _, dependency := range dependencies(bundle.Namespace, bundle.Spec) {
			if _, known := graph[dependency]; known && !explicit[dependency] {
				graph[dependency] = append(graph[dependency], bundle.Key)
			}
		}
	}
	if _, err := graph.sorted(); err != nil {
		return fmt.Errorf("deleteAfter: %w", err)
	}
	return nil
}
