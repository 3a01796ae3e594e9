package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	// requestsInFlight bounds the writes to one target cluster, over all ManagedResources. It is the number at which
	// a local API server is saturated.
	requestsInFlight = 16
	// requestTimeout bounds one write. Admission webhooks may take up to 30 seconds (Kubernetes' limit).
	requestTimeout = 35 * time.Second
)

// Engine sends objects to one target cluster. It is safe for concurrent use; the bound on requests in flight holds
// over all its users.
type Engine struct {
	objects *target.Objects
	policy  fieldowner.Policy
	clock   clock.WithTicker
	slots   chan struct{}

	mu sync.Mutex
	// impersonated are the engines that work in the name of ServiceAccounts.
	impersonated map[types.NamespacedName]*Engine
}

// NewEngine returns an engine for the cluster that objects give access to. The policy says whose fields it takes over.
func NewEngine(objects *target.Objects, policy fieldowner.Policy, clk clock.WithTicker) *Engine {
	return &Engine{
		objects: objects, policy: policy, clock: clk, slots: make(chan struct{}, requestsInFlight),
		impersonated: map[types.NamespacedName]*Engine{},
	}
}

// As returns an engine that works in the name of a ServiceAccount of the target cluster. The bound on requests in flight
// holds over it, too. The error says that the ServiceAccount does not exist, or cannot be looked for.
func (e *Engine) As(ctx context.Context, serviceAccount types.NamespacedName) (*Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := e.objects.CheckServiceAccount(ctx, serviceAccount); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if engine, ok := e.impersonated[serviceAccount]; ok {
		return engine, nil
	}
	objects, err := e.objects.As(serviceAccount)
	if err != nil {
		return nil, err
	}
	engine := &Engine{objects: objects, policy: e.policy, clock: e.clock, slots: e.slots,
		impersonated: map[types.NamespacedName]*Engine{}}
	e.impersonated[serviceAccount] = engine
	return engine, nil
}

// Task is one object to be applied.
type Task struct {
	object.Manifest
	// Live is the object as it was found; nil if it did not exist.
	Live *live.Observation
	// Strip are the labels and annotations that others added and that are to be removed.
	Strip Strip
	// Replace has the object deleted and created anew if its update is rejected as invalid.
	Replace Replace
}

// Outcome is what became of one object that was to be applied.
type Outcome struct {
	object.Ref
	// Observation is the object right after it was applied.
	Observation live.Observation
	// Err says why the object was not applied.
	Err error
}

// Apply sends every object by server-side apply, and returns one outcome per task in the order of the tasks. Fields that
// others own are taken from them. A failure does not keep the others from being tried.
//
// That is one request for each object, and some more where predecessors or people own fields that have to go, or where
// fields are to be preserved.
func (e *Engine) Apply(ctx context.Context, tasks []Task) []Outcome {
	outcomes := make([]Outcome, len(tasks))
	e.forEach(len(tasks), func(i int) {
		observation, err := e.apply(ctx, tasks[i])
		if err != nil {
			err = explain(tasks[i].Manifest, err)
		}
		outcomes[i] = Outcome{Ref: tasks[i].Ref, Observation: observation, Err: err}
	})
	return outcomes
}

func (e *Engine) apply(ctx context.Context, task Task) (live.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	resource, err := e.objects.Resource(task.Ref)
	if err != nil {
		return live.Observation{}, err
	}
	meta, err := e.createOrUpdate(ctx, resource, task)
	if invalid(err) && task.Live != nil && task.Replace.due(err) {
		meta, err = e.replace(ctx, resource, task, err)
	}
	if err != nil {
		return live.Observation{}, e.objects.Explain(task.Ref, err)
	}
	return live.Observe(meta, e.policy), nil
}

func (e *Engine) createOrUpdate(ctx context.Context, resource metadata.ResourceInterface, task Task,
) (*metav1.PartialObjectMetadata, error) {
	if task.Live == nil {
		// Without force: if somebody else has created the object meanwhile, it is looked at again.
		return patch(ctx, resource, task.Name, task.initialBody(), false)
	}
	body, err := e.preserve(ctx, resource, task)
	if err != nil {
		return nil, err
	}
	meta, err := patch(ctx, resource, task.Name, body, true)
	if err != nil {
		return nil, err
	}
	if meta, err = e.takeOver(ctx, resource, task, meta, body); err != nil {
		return nil, err
	}
	return strip(ctx, resource, meta, task.Strip)
}

// initialBody is what is sent to create the object.
func (t Task) initialBody() []byte {
	if t.Initial != nil {
		return t.Initial
	}
	return t.Body
}

func patch(ctx context.Context, resource metadata.ResourceInterface, name string, body []byte, force bool,
) (*metav1.PartialObjectMetadata, error) {
	return resource.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: resourcesv1alpha1.FieldManager,
		Force:        &force,
	})
}

// Deletion is an object to be deleted, in the state in which the decision to delete it was taken.
type Deletion struct {
	object.Ref
	UID             types.UID
	ResourceVersion string
	// Claims has the PersistentVolumeClaims of a StatefulSet deleted before it.
	Claims bool
}

// ErrChanged says that an object was not deleted because it is no longer as it was when that was decided.
var ErrChanged = errors.New("the object has changed")

// Delete asks the API server to delete every object that is still as the deletion describes it, and returns one error
// per deletion, nil where the request was accepted or the object is gone. The error of an object that changed meanwhile,
// and is left alone, wraps ErrChanged.
func (e *Engine) Delete(ctx context.Context, deletions []Deletion) []error {
	errs := make([]error, len(deletions))
	e.forEach(len(deletions), func(i int) {
		switch err := e.delete(ctx, deletions[i]); {
		case err == nil || apierrors.IsNotFound(err):
		case apierrors.IsConflict(err):
			errs[i] = fmt.Errorf("delete %s: %w: %w", deletions[i].Ref, ErrChanged, err)
		default:
			errs[i] = fmt.Errorf("delete %s: %w", deletions[i].Ref, err)
		}
	})
	return errs
}

func (e *Engine) delete(ctx context.Context, deletion Deletion) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	resource, err := e.objects.ResourceInAnyVersion(deletion.Ref)
	if err != nil {
		return err
	}
	if IsDefinition(deletion.GroupKind()) {
		e.awaken(ctx, deletion)
	}
	if deletion.Claims {
		if err := e.objects.DeleteClaims(ctx, deletion.Namespace, deletion.Name, deletion.UID); err != nil {
			return fmt.Errorf("delete its PersistentVolumeClaims: %w", err)
		}
	}
	err = resource.Delete(ctx, deletion.Name, metav1.DeleteOptions{
		PropagationPolicy: propagation(deletion.Group),
		Preconditions:     &metav1.Preconditions{UID: &deletion.UID, ResourceVersion: &deletion.ResourceVersion},
	})
	return e.objects.Explain(deletion.Ref, err)
}

// propagation returns Foreground for workloads, so that they are gone only after their pods, and the API server's
// default for all others, as gardener-resource-manager does.
func propagation(group string) *metav1.DeletionPropagation {
	switch group {
	case "apps", "extensions", "batch":
		return ptr.To(metav1.DeletePropagationForeground)
	}
	return nil
}

// forEach calls do for 0…count-1, as many at a time as there are free slots. A panic in one of the calls is passed on to the
// caller, where it ends one reconcile and not the process.
func (e *Engine) forEach(count int, do func(i int)) {
	var group sync.WaitGroup
	panics := make(chan any, count)
	for i := range count {
		e.slots <- struct{}{}
		group.Go(func() {
			defer func() {
				<-e.slots
				if cause := recover(); cause != nil {
					panics <- cause
				}
			}()
			do(i)
		})
	}
	group.Wait()
	select {
	case cause := <-panics:
		panic(cause)
	default:
	}
}
