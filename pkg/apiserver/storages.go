package apiserver

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// source is a storage whose objects can be listed and watched.
type source interface {
	rest.Lister
	rest.Watcher
}

// storages are the storages of the resources that the server serves. The informers of the server read from them: in a request to itself, it
// would encode and decode each object, which costs a fifth of the time to store it.
type storages map[schema.GroupResource]source

// add adds the storages of a group. Subresources are left out.
func (s storages) add(group string, all map[string]rest.Storage) {
	for name, storage := range all {
		if readable, is := storage.(source); is {
			s[schema.GroupResource{Group: group, Resource: name}] = readable
		}
	}
}

// listWatch lists and watches the objects of a resource that options select, those of its namespace and with its labels.
func (s storages) listWatch(resource schema.GroupResource, only client.ListOptions) *toolscache.ListWatch {
	find := func(ctx context.Context, raw metav1.ListOptions) (context.Context, source, *metainternalversion.ListOptions, error) {
		storage, served := s[resource]
		if !served {
			return nil, nil, nil, fmt.Errorf("the API server does not serve %s", resource)
		}
		options := &metainternalversion.ListOptions{}
		if err := metainternalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&raw, options, nil); err != nil {
			return nil, nil, nil, fmt.Errorf("list %s: %w", resource, err)
		}
		options.LabelSelector = only.LabelSelector
		return request.WithNamespace(ctx, only.Namespace), storage, options, nil
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			ctx, storage, options, err := find(ctx, raw)
			if err != nil {
				return nil, err
			}
			list, err := storage.List(ctx, options)
			if err != nil {
				return nil, err
			}
			return list.DeepCopyObject(), nil // its items share memory with the cache of the storage
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			ctx, storage, options, err := find(ctx, raw)
			if err != nil {
				return nil, err
			}
			events, err := storage.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, own), nil
		},
	}
}

// own replaces the object of an event that several watches share, so that it is encoded once, by a copy.
func own(event watch.Event) (watch.Event, bool) {
	if shared, is := event.Object.(runtime.CacheableObject); is {
		event.Object = shared.GetObject()
	}
	return event, true
}
