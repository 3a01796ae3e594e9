package registry

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/tools/cache"
)

// Storage serves the main resource of a kind.
type Storage[T Object] struct {
	*genericregistry.Store

	kind *Kind[T]
}

var (
	_ rest.StandardStorage    = &Storage[Object]{}
	_ rest.ShortNamesProvider = &Storage[Object]{}
	_ rest.CategoriesProvider = &Storage[Object]{}
)

// ShortNames implements rest.ShortNamesProvider.
func (s *Storage[T]) ShortNames() []string { return s.kind.ShortNames }

// Categories implements rest.CategoriesProvider.
func (s *Storage[T]) Categories() []string { return s.kind.Categories }

// NewStorage returns what serves the kind by resource name: the resource itself and, if the kind has a status, its
// subresource status. It fails if etcd's storage cannot be set up.
func (k *Kind[T]) NewStorage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*Storage[T], map[string]rest.Storage, error) {
	main := strategy[T]{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, kind: k}
	resource := k.GroupVersionResource.GroupResource()
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return k.New() },
		NewListFunc:               k.NewList,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: schema.GroupResource{Group: resource.Group, Resource: k.Singular},
		PredicateFunc:             k.predicate,
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            newTable(k.Columns),
	}
	options := &generic.StoreOptions{RESTOptions: getter, AttrFunc: k.attributes}
	if k.IndexedField != "" {
		options.TriggerFunc = storage.IndexerFuncs{k.IndexedField: k.indexedValue}
		options.Indexers = &cache.Indexers{storage.FieldIndex(k.IndexedField): k.index}
	}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, nil, fmt.Errorf("set up the storage of %s: %w", resource, err)
	}
	served := &Storage[T]{Store: store, kind: k}
	all := map[string]rest.Storage{k.GroupVersionResource.Resource: served}
	if k.CopyStatus != nil {
		all[k.GroupVersionResource.Resource+"/status"] = served.Subresource(statusStrategy[T]{main})
	}
	return served, all, nil
}
