package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

	kind     *Kind[T]
	strategy strategy[T]
}

var (
	_ Served                  = &Kind[Object]{}
	_ rest.StandardStorage    = &Storage[Object]{}
	_ rest.ShortNamesProvider = &Storage[Object]{}
	_ rest.CategoriesProvider = &Storage[Object]{}
)

// ShortNames implements rest.ShortNamesProvider.
func (s *Storage[T]) ShortNames() []string { return s.kind.ShortNames }

// Categories implements rest.CategoriesProvider.
func (s *Storage[T]) Categories() []string {
	if s.kind.InAll {
		return []string{"all"}
	}
	return nil
}

// Served is a kind, of any Go type, that an API server can serve.
type Served interface {
	// Storages returns the storages of the kind by resource name: the resource itself and its subresources, such as
	// shoots/status. It registers the field selectors of the kind with the scheme. It fails if the storage cannot be set up,
	// or if the subresources differ from those that the resource lists.
	Storages(*runtime.Scheme, generic.RESTOptionsGetter) (map[string]rest.Storage, error)
}

// Storages implements Served.
func (k *Kind[T]) Storages(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	if err := k.registerFieldLabels(scheme); err != nil {
		return nil, err
	}
	main, err := k.newStorage(scheme, getter)
	if err != nil {
		return nil, err
	}
	further := map[string]rest.Storage{}
	if k.Further != nil {
		further = k.Further(main)
	}
	if slices.Contains(k.Subresources, "status") {
		status := statusStrategy[T]{main.strategy}
		further["status"] = &statusResource{Subresource: main.Subresource(status), ResetFieldsStrategy: status}
	}
	if found := slices.Sorted(maps.Keys(further)); !slices.Equal(found, slices.Sorted(slices.Values(k.Subresources))) {
		return nil, fmt.Errorf("subresources of %s: it has %v, but lists %v", k.GroupResource(), found, k.Subresources)
	}
	all := map[string]rest.Storage{k.Name: main}
	for name, storage := range further {
		all[k.Name+"/"+name] = storage
	}
	return all, nil
}

func (k *Kind[T]) newStorage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*Storage[T], error) {
	main := strategy[T]{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, kind: k}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return k.New() },
		NewListFunc:               k.NewList,
		DefaultQualifiedResource:  k.GroupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: k.Group, Resource: strings.ToLower(k.Kind)},
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
	if k.Release != nil {
		store.AfterDelete = k.release
	}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("set up the storage of %s: %w", k.GroupResource(), err)
	}
	return &Storage[T]{Store: store, kind: k, strategy: main}, nil
}
