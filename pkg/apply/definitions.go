package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// servedInterval is how often discovery is asked for the kinds of a new CustomResourceDefinition.
	servedInterval = 50 * time.Millisecond
	// servedTimeout bounds the wait for the kinds of CustomResourceDefinitions, which holds a worker. An API server normally serves a
	// new kind far below a second after it has accepted the definition.
	servedTimeout = time.Second
)

// AwaitServed waits for a second at most until the API server serves the kinds. It returns the kinds that are not served by then, each
// with the reason.
func (e *Engine) AwaitServed(ctx context.Context, gvks []schema.GroupVersionKind) map[schema.GroupKind]error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	ticker := e.clock.NewTicker(servedInterval)
	defer ticker.Stop()
	unserved := e.Unserved(gvks)
	for len(unserved) > 0 {
		select {
		case <-ticker.C():
			gvks = slices.DeleteFunc(slices.Clone(gvks), func(gvk schema.GroupVersionKind) bool { return unserved[gvk.GroupKind()] == nil })
			unserved = e.Unserved(gvks)
		case <-ctx.Done():
			return unserved
		}
	}
	return unserved
}

// Unserved returns the kinds that the API server does not serve at the moment, each with the reason.
func (e *Engine) Unserved(gvks []schema.GroupVersionKind) map[schema.GroupKind]error {
	unserved := map[schema.GroupKind]error{}
	for _, gvk := range gvks {
		if _, err := e.objects.Discover(gvk); err != nil {
			unserved[gvk.GroupKind()] = fmt.Errorf("see the conditions of the CustomResourceDefinition: %w", err)
		}
	}
	return unserved
}

// openStorage makes the API server open its storage of a CustomResourceDefinition's objects before the definition is deleted. If no client
// has read them before, the API server opens it only to delete them, finds it not ready yet, and may then forget about the deletion for five
// minutes (a race of its crd_finalizer with its own status update). The definition is deleted even if its objects cannot be listed.
func (e *Engine) openStorage(ctx context.Context, deletion Deletion) {
	resource, err := e.objects.Defined(deletion.Name)
	if err != nil {
		return
	}
	_, err = resource.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not list the objects of a CustomResourceDefinition before its deletion",
			"customResourceDefinition", deletion.Name, "error", err.Error())
	}
}
