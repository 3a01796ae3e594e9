package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxNamed is the number of changed fields that an error names.
const maxNamed = 10

// UnchangedInDeletion returns an error if an update changes the specification of an object that is being deleted. The error
// names the changed fields without their values. The kind is the one in the message, in lower case.
func UnchangedInDeletion(kind string, object metav1.Object, spec, old any, path *field.Path) field.ErrorList {
	if object.GetDeletionTimestamp() == nil || equality.Semantic.DeepEqual(spec, old) {
		return nil
	}
	changed := slices.Sorted(maps.Keys(changedFields(tree(spec), tree(old), path.String())))
	if more := len(changed) - maxNamed; more > 0 {
		changed = append(changed[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"cannot update %s spec if deletion timestamp is set. Requested changes: %s", kind, strings.Join(changed, ", ")))}
}

// tree returns the fields of a value as clients see them.
func tree(value any) any {
	var fields any
	encoded, err := json.Marshal(value)
	if err != nil || json.Unmarshal(encoded, &fields) != nil {
		return value
	}
	return fields
}

// changedFields returns the paths of the innermost fields that differ. A list with another length is one field.
func changedFields(now, before any, path string) map[string]bool {
	changed := map[string]bool{}
	newMap, isMap := now.(map[string]any)
	oldMap, wasMap := before.(map[string]any)
	newList, isList := now.([]any)
	oldList, wasList := before.([]any)
	switch {
	case reflect.DeepEqual(now, before):
	case isMap && wasMap:
		for _, key := range slices.Concat(slices.Collect(maps.Keys(newMap)), slices.Collect(maps.Keys(oldMap))) {
			maps.Copy(changed, changedFields(newMap[key], oldMap[key], path+"."+key))
		}
	case isList && wasList && len(newList) == len(oldList):
		for i := range newList {
			maps.Copy(changed, changedFields(newList[i], oldList[i], fmt.Sprintf("%s[%d]", path, i)))
		}
	default:
		changed[path] = true
	}
	return changed
}
