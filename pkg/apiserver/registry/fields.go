package registry

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// attributes returns the labels and fields of an object that selectors are matched against.
func (k *Kind[T]) attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	typed, ok := object.(T)
	if !ok {
		return nil, nil, fmt.Errorf("select %s: got a %T", k.GroupVersionResource.Resource, object)
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
		return nil, fmt.Errorf("index %s: got a %T", k.GroupVersionResource.Resource, object)
	}
	return []string{k.SelectableFields(typed)[k.IndexedField]}, nil
}

// RegisterFieldLabels makes the API server accept the field selectors of the kind, and refuse all others.
func (k *Kind[T]) RegisterFieldLabels(scheme *runtime.Scheme, kind string) error {
	_, supported, err := k.attributes(k.New())
	if err != nil {
		return err
	}
	convert := func(label, value string) (string, string, error) {
		if _, ok := supported[label]; !ok {
			return "", "", fmt.Errorf("field label not supported: %s (supported: %v)", label, slices.Sorted(maps.Keys(supported)))
		}
		return label, value, nil
	}
	return scheme.AddFieldLabelConversionFunc(k.GroupVersionResource.GroupVersion().WithKind(kind), convert)
}
