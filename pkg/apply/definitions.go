package apply

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// servedInterval is how often discovery is asked for the kinds of a new CustomResourceDefinition.
	servedInterval = 50 * time.Millisecond
	// servedTimeout is how long a CustomResourceDefinition may take until its kinds are served. It normally takes far
	// below a second; the API server takes up to five more in a high-availability setup.
	servedTimeout = 15 * time.Second
)

// AwaitServed waits until the API server serves the kinds, which it does once their CustomResourceDefinition is
// Established. It returns the kinds that are not served in time, each with the reason.
func (e *Engine) AwaitServed(ctx context.Context, gvks []schema.GroupVersionKind) map[schema.GroupKind]error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()

	failed := map[schema.GroupKind]error{}
	for _, gvk := range gvks {
		if err := e.awaitServed(ctx, gvk); err != nil {
			failed[gvk.GroupKind()] = err
		}
	}
	return failed
}

func (e *Engine) awaitServed(ctx context.Context, gvk schema.GroupVersionKind) error {
	ticker := e.clock.NewTicker(servedInterval)
	defer ticker.Stop()
	for {
		_, err := e.objects.Mapping(gvk)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return fmt.Errorf("not served within %s after its CustomResourceDefinition was applied, "+
				"see the conditions of the CustomResourceDefinition: %w", servedTimeout, err)
		}
	}
}

// awaken has the API server open its storage of a CustomResourceDefinition's objects before the definition is deleted.
// If nobody has asked for them before, the API server opens it only to delete them, finds it not ready yet, and may then
// forget about the deletion for five minutes (a race of its crd_finalizer with its own status update). That the objects
// cannot be listed is no reason not to delete the definition.
func (e *Engine) awaken(ctx context.Context, deletion Deletion) {
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
