package crdwatch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
)

type served struct{}

func (served) Serves(schema.GroupVersionKind) (bool, error) { return true, nil }

// TestGet checks that objects with and without a namespace are found by their names.
func TestGet(t *testing.T) {
	for _, namespace := range []string{"", "garden"} {
		resource := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"}
		thing := &unstructured.Unstructured{}
		thing.SetAPIVersion("example.org/v1")
		thing.SetKind("Thing")
		thing.SetNamespace(namespace)
		thing.SetName("one")
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "things.example.org"}}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: definitions.Group, Version: definitions.Version, Kind: "CustomResourceDefinition"})
		known := make(chan struct{}, 10)
		w := New(Options{
			Dynamic:  dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "ThingList"}, thing),
			Metadata: metadatafake.NewSimpleMetadataClient(scheme, definition), Kinds: served{}, Namespaces: []string{metav1.NamespaceAll},
			Resource: resource, Kind: "Thing", Reduce: func(object *unstructured.Unstructured) any { return object },
			OnEvent: func(any) {}, OnKnown: func() { known <- struct{}{} },
		})
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for !w.Known() || !w.Exists() {
			<-known
		}
		if w.Get(types.NamespacedName{Namespace: namespace, Name: "one"}) == nil {
			t.Errorf("the object in the namespace %q is not found", namespace)
		}
		if w.Get(types.NamespacedName{Namespace: namespace, Name: "other"}) != nil {
			t.Errorf("found an object in the namespace %q that does not exist", namespace)
		}
	}
}
