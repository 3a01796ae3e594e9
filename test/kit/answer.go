package kit

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Answer calls a function for each object of some kinds, repeatedly until the test ends. The function simulates a program
// that the test does not run, such as an extension. Kinds that are not served have no objects.
func Answer(tb testing.TB, c client.Client, answer func(context.Context, *unstructured.Unstructured), kinds ...schema.GroupVersionKind) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	tb.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			for _, kind := range kinds {
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
				if c.List(ctx, list) != nil {
					continue
				}
				for i := range list.Items {
					answer(ctx, &list.Items[i])
				}
			}
		}, longestInterval)
	}()
}
