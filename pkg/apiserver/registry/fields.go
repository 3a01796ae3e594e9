package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// attributes returns the labels and fields of an object for selectors.
func (k *Kind[T]) attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	typed, ok := object.(T)
	if !ok {
		return nil, nil, fmt.Errorf("select %s: got a %T", k.Name, object)
	}
	selectable := fields.Set{metav1.ObjectNameField: typed.GetName()}
	if k.Namespaced {
		selectable["metadata.namespace"] = typed.GetNamespace()
	}
	if k.SelectableFields != nil {
		maps.Copy(selectable, k.SelectableFields(typed))
	}
	return typed.GetLabels(), selectable, nil
}

func (k *Kind[T]) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	predicate := storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
	if k.IndexedField != "" {
		predicate.IndexFields = []string{k.IndexedField}
	}
	return predicate
}

func (k *Kind[T]) indexedValue(object runtime.Object) string {
	return k.SelectableFields(object.(T))[k.IndexedField]
}

func (k *Kind[T]) index(object any) ([]string, error) {
	typed, ok := object.(T)
	if !ok {
		return nil, fmt.Errorf("index %s: got a %T", k.Name, object)
	}
	return []string{k.SelectableFields(typed)[k.IndexedField]}, nil
}

// registerFieldLabels makes the API server accept the field selectors of the kind, and reject all others. It fails if the
// kind does not have values for exactly the fields that the resource lists.
func (k *Kind[T]) registerFieldLabels(scheme *runtime.Scheme) error {
	_, selectable, err := k.attributes(k.New())
	if err != nil {
		return err
	}
	supported := append([]string{metav1.ObjectNameField}, k.Fields...)
	if k.Namespaced {
		supported = append(supported, "metadata.namespace")
	}
	slices.Sort(supported)
	if found := slices.Sorted(maps.Keys(selectable)); !slices.Equal(found, supported) {
		return fmt.Errorf("field selectors of %s: it has values of %v, but lists %v", k.GroupResource(), found, supported)
	}
	convert := func(label, value string) (string, string, error) {
		if !slices.Contains(supported, label) {
			return "", "", fmt.Errorf("field label not supported: %s (supported: %v)", label, supported)
		}
		return label, value, nil
	}
	var errs []error
	for _, version := range k.versions(scheme) {
		errs = append(errs, scheme.AddFieldLabelConversionFunc(version, convert))
	}
	return errors.Join(errs...)
}

// versions returns the kind in each of its versions.
func (k *Kind[T]) versions(scheme *runtime.Scheme) []schema.GroupVersionKind {
	var versions []schema.GroupVersionKind
	for _, version := range scheme.VersionsForGroupKind(k.GroupKind()) {
		versions = append(versions, version.WithKind(k.Kind))
	}
	return versions
}
