package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
