package garbagecollector

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// concurrentDeletions is how many objects are deleted at a time.
	concurrentDeletions = 16
	// batchSize is how many objects are deleted between two looks at the references.
	batchSize = 500
)

// DeletionError says which objects could not be deleted.
type DeletionError struct {
	// Errors has an error for each object, in the order of kind, namespace and name.
	Errors []error
}

// Error names all objects. It begins as in gardener-resource-manager.
func (e *DeletionError) Error() string {
	texts := make([]string, 0, len(e.Errors))
	for _, err := range e.Errors {
		texts = append(texts, err.Error())
	}
	return "Could not delete all unused resources: " + strings.Join(texts, "; ")
}

// Unwrap returns the errors of the objects.
func (e *DeletionError) Unwrap() []error { return e.Errors }

// outcome is what became of a deletion.
type outcome int

const (
	failed outcome = iota
	// deleted: the API server has taken on the deletion.
	deleted
	// gone: another client deleted the object.
	gone
	// changed: the object was changed or re-created since it was listed. The next run decides.
	changed
)

// deleteAll deletes objects in parallel. One that cannot be deleted does not stop the others.
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
		case failed:
			result.failures = append(result.failures, errs[i])
		case gone:
		}
	}
}

// delete deletes an object if it still is as it was listed.
func (c *Collector) delete(ctx context.Context, one candidate) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
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

// report is what came of a run.
type report struct {
	// candidates and deleted count objects by kind.
	candidates, deleted map[string]int
	// young are too new to be deleted, unused were found to be so at the first look, saved are those of them that something
	// referenced at the second one, changed those that were changed meanwhile.
	young, unused, saved, changed int
	failures                      []error
	// listed is set once the candidates are known, listFailed if a list ended the run.
	listed, listFailed bool
}
