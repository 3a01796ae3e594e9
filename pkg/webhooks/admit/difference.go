package admit

import (
	"fmt"
	"reflect"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/util/json"
)

// difference returns the patch that does to raw, the object as it was sent, what was done to before, the same object in the form of a
// type, to get after. What the type does not know stays as it was sent.
func difference(raw, before, after []byte) ([]jsonpatch.Operation, error) {
	var sent, old, changed any
	for text, value := range map[*[]byte]*any{&raw: &sent, &before: &old, &after: &changed} {
		if err := json.Unmarshal(*text, value); err != nil {
			return nil, fmt.Errorf("find what has changed: %w", err)
		}
	}
	result, err := json.Marshal(redo(sent, old, changed))
	if err != nil {
		return nil, fmt.Errorf("encode the changed object: %w", err)
	}
	patch, err := jsonpatch.CreatePatch(raw, result)
	if err != nil {
		return nil, fmt.Errorf("find what has changed: %w", err)
	}
	return patch, nil
}

// redo does to what was sent what makes new of old. A list whose elements cannot be paired, as one of them is gone, is replaced.
func redo(sent, old, changed any) any {
	if reflect.DeepEqual(old, changed) {
		return sent
	}
	switch changed := changed.(type) {
	case map[string]any:
		old, is := old.(map[string]any)
		if !is {
			return changed
		}
		fields, is := sent.(map[string]any)
		if !is {
			fields = map[string]any{} // the type has a field where nothing was sent
		}
		return redoFields(fields, old, changed)
	case []any:
		old, _ := old.([]any)
		elements, is := sent.([]any)
		if !is || len(elements) != len(old) || len(changed) < len(old) {
			return changed
		}
		result := make([]any, 0, len(changed))
		for i := range old {
			result = append(result, redo(elements[i], old[i], changed[i]))
		}
		return append(result, changed[len(old):]...)
	default:
		return changed
	}
}

func redoFields(sent, old, changed map[string]any) map[string]any {
	result := make(map[string]any, len(sent))
	for key, value := range sent {
		if _, kept := changed[key]; kept || !has(old, key) {
			result[key] = value
		}
	}
	for key, value := range changed {
		if !has(old, key) || !reflect.DeepEqual(old[key], value) {
			result[key] = redo(sent[key], old[key], value)
		}
	}
	return result
}

func has(fields map[string]any, key string) bool {
	_, found := fields[key]
	return found
}
