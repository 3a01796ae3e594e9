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
	// servedInterval is how often discovery is queried for the kinds of a new CustomResourceDefinition.
	servedInterval = 50 * time.Millisecond
	// servedTimeout limits the wait for the kinds of CustomResourceDefinitions, which occupies a worker. An API server
	// normally serves a new kind much less than a second after it has accepted the definition.
	servedTimeout = time.Second
)

// AwaitServed waits for up to one second until the API server serves the kinds. It returns the kinds that are still not
// served, each with the reason.
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

// Unserved returns the kinds that the API server currently does not serve, each with the reason.
func (e *Engine) Unserved(gvks []schema.GroupVersionKind) map[schema.GroupKind]error {
	unserved := map[schema.GroupKind]error{}
	for _, gvk := range gvks {
		if _, err := e.objects.Discover(gvk); err != nil {
			unserved[gvk.GroupKind()] = fmt.Errorf("see the conditions of the CustomResourceDefinition: %w", err)
		}
	}
	return unserved
}

// openStorage makes the API server open the storage for the objects of a CustomResourceDefinition before the definition
// is deleted. If no client has read these objects before, the API server opens the storage only for their deletion. It
// is then not ready yet, and the API server may not continue the deletion for five minutes (a race of its crd_finalizer
// with its own status update). If the objects cannot be listed, the definition is still deleted.
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
