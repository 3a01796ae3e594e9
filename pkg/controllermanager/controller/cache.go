package controller

import (
	"fmt"
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// Keep copies the fields of a kind that a controller reads. The cache has the fields of all controllers, in addition to those of
// [cachetransform.Meta].
type Keep struct {
	// Object is an empty object of the kind.
	Object client.Object
	// Copy adds fields of an object to its reduced form. It must not remove fields, and may share memory.
	Copy func(kept, whole client.Object)
}

// Keeping returns a Keep for a kind.
func Keeping[T any, P interface {
	*T
	client.Object
}](add func(kept, whole P)) Keep {
	return Keep{Object: P(new(T)), Copy: func(kept, whole client.Object) {
		into, ok := kept.(P)
		from, same := whole.(P)
		if ok && same {
			add(into, from)
		}
	}}
}

// Whole returns a Keep for a kind that is cached whole, with its finalizers, even if other controllers keep only some of its fields.
func Whole[T any, P interface {
	*T
	client.Object
}]() Keep {
	return Keep{Object: P(new(T)), Copy: func(kept, whole client.Object) {
		into, ok := kept.(P)
		from, same := whole.(P)
		if ok && same {
			*into = *from
			kept.SetManagedFields(nil)
		}
	}}
}

// Cache returns the options of the cache by kind. It fails if two controllers restrict the same kind, because a cache can have only
// one restriction for each kind.
func (s Set) Cache() (map[client.Object]cache.ByObject, error) {
	kinds, by := map[string]client.Object{}, map[string]string{}
	options := map[client.Object]cache.ByObject{}
	keeps := map[string][]Keep{}
	for _, one := range s {
		for _, selected := range one.Selects {
			kind := kindOf(selected.Object)
			if by[kind] != "" {
				return nil, fmt.Errorf("the controllers %s and %s both select which objects of %s are cached", by[kind], one.Name, kind)
			}
			kinds[kind], by[kind], options[selected.Object] = selected.Object, one.Name, selected.Options
		}
	}
	for _, one := range s {
		for _, keep := range one.Keeps {
			kind := kindOf(keep.Object)
			if kinds[kind] == nil {
				kinds[kind] = keep.Object
			}
			keeps[kind] = append(keeps[kind], keep)
		}
	}
	for kind, all := range keeps {
		object := kinds[kind]
		of := options[object]
		if of.Transform != nil {
			return nil, fmt.Errorf("objects of %s are both reduced and transformed", kind)
		}
		of.Transform = reduce(all)
		options[object] = of
	}
	return options, nil
}

// kindOf names the kind of an object, and whether it is only metadata.
func kindOf(object client.Object) string {
	return fmt.Sprintf("%T %s", object, object.GetObjectKind().GroupVersionKind().Kind)
}

// reduce returns a transform that keeps only fields.
func reduce(keeps []Keep) toolscache.TransformFunc {
	return func(object any) (any, error) {
		whole, ok := object.(client.Object)
		if !ok {
			return object, nil // a tombstone
		}
		kept, ok := reflect.New(reflect.TypeOf(keeps[0].Object).Elem()).Interface().(client.Object)
		if !ok {
			return object, nil
		}
		meta := cachetransform.Meta(whole)
		kept.SetNamespace(meta.Namespace)
		kept.SetName(meta.Name)
		kept.SetUID(meta.UID)
		kept.SetResourceVersion(meta.ResourceVersion)
		kept.SetDeletionTimestamp(meta.DeletionTimestamp)
		for _, keep := range keeps {
			keep.Copy(kept, whole)
		}
		return kept, nil
	}
}
