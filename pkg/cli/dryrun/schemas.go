package dryrun

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi3"
)

// schemas merges objects as the API server does, with the schemas that it publishes. It is safe for concurrent use.
type schemas struct {
	root openapi3.Root

	mu         sync.Mutex
	converters map[schema.GroupVersion]managedfields.TypeConverter
}

func newSchemas(root openapi3.Root) *schemas {
	return &schemas{root: root, converters: map[schema.GroupVersion]managedfields.TypeConverter{}}
}

// converter returns the type converter for the kinds of a version. Kinds without a schema are merged by the structure
// of the objects.
func (s *schemas) converter(gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if converter, known := s.converters[gv]; known {
		return converter, nil
	}
	converter := managedfields.NewDeducedTypeConverter()
	published, err := s.root.GVSpec(gv)
	var notFound *openapi3.GroupVersionNotFoundError
	switch {
	case errors.As(err, &notFound):
	case err != nil:
		return nil, fmt.Errorf("read the schemas of %s: %w", gv, err)
	case published.Components != nil:
		if converter, err = managedfields.NewTypeConverter(published.Components.Schemas, false); err != nil {
			return nil, fmt.Errorf("read the schemas of %s: %w", gv, err)
		}
	}
	s.converters[gv] = converter
	return converter, nil
}

// apply returns the result of a forced server-side apply to a live object.
func (s *schemas) apply(live, applied *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	gvk := applied.GroupVersionKind()
	converter, err := s.converter(gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	fields, err := managedfields.NewDefaultCRDFieldManager(
		converter, sameVersion{}, noDefaults{}, newObjects{}, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		return nil, err
	}
	result, err := fields.Apply(live.DeepCopy(), applied, manager, true)
	if err != nil {
		return nil, err
	}
	merged, is := result.(*unstructured.Unstructured)
	if !is {
		return nil, fmt.Errorf("unexpected result of type %T", result)
	}
	return merged, nil
}

// sameVersion does not convert between versions. Field ownership in other versions is dropped, just as the API server
// drops that
// of versions that it no longer serves.
type sameVersion struct{}

// Convert returns an error.
func (sameVersion) Convert(_, _, _ any) error { return errors.New("versions are not converted") }

// ConvertToVersion returns objects that already have the version.
func (sameVersion) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	if to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk}); ok && to == gvk {
		return in, nil
	}
	return nil, runtime.NewNotRegisteredErrForKind("preview", gvk)
}

// ConvertFieldLabel returns the label unchanged.
func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// noDefaults sets no defaults, because the API server does.
type noDefaults struct{}

// Default does nothing.
func (noDefaults) Default(runtime.Object) {}

// newObjects creates empty objects.
type newObjects struct{}

// New returns an empty object.
func (newObjects) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kind)
	return obj, nil
}
