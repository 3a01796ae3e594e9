package garbagecollector

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/references"
)

const (
	// concurrentDeletions is the number of objects that are deleted concurrently.
	concurrentDeletions = 16
	// batchSize is the number of objects that are deleted before references are listed again.
	batchSize = 500
)

// DeletionError reports the objects that could not be deleted.
type DeletionError struct {
	// Errors has an error for each object, sorted by kind, namespace and name.
	Errors []error
}

// Error names all objects. It starts with the text of gardener-resource-manager.
func (e *DeletionError) Error() string {
	texts := make([]string, 0, len(e.Errors))
	for _, err := range e.Errors {
		texts = append(texts, err.Error())
	}
	return "Could not delete all unused resources: " + strings.Join(texts, "; ")
}

// Unwrap returns the errors of the objects.
func (e *DeletionError) Unwrap() []error { return e.Errors }

// outcome is the result of a deletion.
type outcome int

const (
	failed outcome = iota
	// deleted: the API server accepted the deletion.
	deleted
	// gone: another client deleted the object.
	gone
	// changed: the object was changed or re-created since it was listed. The next run decides.
	changed
	// referenced: a ManagedResource refers to the object since references were listed.
	referenced
)

// deleteAll deletes objects in parallel. A failed deletion does not stop the others.
func (c *Collector) deleteAll(ctx context.Context, garbage []candidate, result *report) {
	outcomes := make([]outcome, len(garbage))
	errs := make([]error, len(garbage))
	var group errgroup.Group
	group.SetLimit(concurrentDeletions)
	for i, one := range garbage {
		group.Go(func() error {
			outcomes[i], errs[i] = c.delete(ctx, one)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	log := logr.FromContextOrDiscard(ctx)
	for i, one := range garbage {
		switch outcomes[i] {
		case deleted:
			result.deleted[one.kindName()]++
			log.V(1).Info("Deleted an unreferenced object", "kind", one.kindName(), "namespace", one.namespace, "name", one.Name)
		case changed:
			result.changed++
		case referenced:
			result.saved++
		case failed:
			result.failures = append(result.failures, errs[i])
		case gone:
		}
	}
}

// delete deletes an object if it is still in the listed state. A Secret is not deleted if a ManagedResource of its
// namespace refers to it at this moment.
func (c *Collector) delete(ctx context.Context, one candidate) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if one.Kind == references.KindSecret {
		named, err := c.namedByManagedResources(ctx, []string{one.namespace})
		if err != nil {
			return failed, fmt.Errorf("%s: %w", one, err)
		}
		if len(unused([]candidate{one}, named)) == 0 {
			return referenced, nil
		}
	}
	err := c.Metadata.Resource(candidateResources[one.Kind]).Namespace(one.namespace).Delete(ctx, one.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &one.uid, ResourceVersion: &one.resourceVersion},
	})
	switch {
	case err == nil:
		return deleted, nil
	case apierrors.IsNotFound(err):
		return gone, nil
	case apierrors.IsConflict(err):
		return changed, nil
	}
	return failed, fmt.Errorf("%s: %w", one, err)
}

// report is the result of a run.
type report struct {
	// candidates and deleted count objects by kind.
	candidates, deleted map[string]int
	// young counts the candidates that are too new to be deleted. unused counts those without references in the first
	// list. saved counts those of them that later lists reference, and changed those that were modified after the
	// first list.
	young, unused, saved, changed int
	failures                      []error
	// listed is set once the candidates are known. listFailed is set if a failed list ended the run.
	listed, listFailed bool
}
