package apply

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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
	objects Cluster
	Settings
	clock clock.WithTicker
	slots chan struct{}
}

// Settings say how an engine applies objects.
type Settings struct {
	// Policy says whose fields it takes over.
	Policy fieldowner.Policy
	// Strict refuses objects with fields that the API server does not know. Otherwise they are applied without these fields.
	Strict bool
}

// NewEngine returns an engine for the cluster that objects give access to.
func NewEngine(objects *target.Objects, settings Settings, clk clock.WithTicker) *Engine {
	return NewEngineFor(realCluster{objects}, settings, clk)
}

// NewEngineFor is NewEngine for what may not be the cluster itself.
func NewEngineFor(cluster Cluster, settings Settings, clk clock.WithTicker) *Engine {
	return &Engine{objects: cluster, Settings: settings, clock: clk, slots: make(chan struct{}, requestsInFlight)}
}

// As returns an engine that works in the name of a ServiceAccount of the target cluster. The bound on requests in flight
// holds over it, too. It is for one pass and not kept: with as many tenants as there may be, nothing remains of them. The error says
// that the ServiceAccount does not exist, or cannot be looked for.
func (e *Engine) As(ctx context.Context, serviceAccount types.NamespacedName) (*Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := e.objects.CheckServiceAccount(ctx, serviceAccount); err != nil {
		return nil, err
	}
	objects, err := e.objects.As(serviceAccount)
	if err != nil {
		return nil, err
	}
	return &Engine{objects: objects, Settings: e.Settings, clock: e.clock, slots: e.slots}, nil
}

// Task is one object to be applied.
type Task struct {
	object.Manifest
	// Live is the object as it was found; nil if it did not exist.
	Live *live.Observation
	// Revised says that the manifest changed since the object was applied.
	Revised bool
	// Strip are the labels and annotations that others added and that are to be removed.
	Strip Strip
	// Replace says whether the object is deleted and created again if its update is rejected as invalid.
	Replace Replace
}

// Outcome is what became of one object that was to be applied.
type Outcome struct {
	object.Ref
	// Observation is the object right after it was applied.
	Observation live.Observation
	// Dropped are the paths of fields that the API server does not know. The object was applied without them.
	Dropped []string
	// Err says why the object was not applied.
	Err error
}

// Apply sends every object by server-side apply, and returns one outcome per task in the order of the tasks. Fields that
// others own are taken from them. A failure does not keep the others from being tried.
//
// That is one request for each object, and some more where others own fields that have to go, or where fields are to be
// preserved.
func (e *Engine) Apply(ctx context.Context, tasks []Task) []Outcome {
	outcomes := make([]Outcome, len(tasks))
	e.forEach(len(tasks), func(i int) {
		outcomes[i] = e.apply(ctx, tasks[i])
	})
	return outcomes
}

func (e *Engine) apply(ctx context.Context, task Task) Outcome {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	outcome := Outcome{Ref: task.Ref}
	meta, err := e.send(ctx, task)
	if undeclared(err) {
		outcome.Dropped, meta, err = e.sendKnown(ctx, task, err)
	}
	if err == nil {
		meta, err = e.applyStatus(ctx, task, meta)
	}
	if err != nil {
		outcome.Dropped, outcome.Err = nil, explain(task.Manifest, task.Live != nil, e.objects.Explain(task.Ref, err))
		return outcome
	}
	outcome.Observation = live.Observe(meta, e.Policy)
	return outcome
}

// send applies the object, or replaces it if that is due.
func (e *Engine) send(ctx context.Context, task Task) (*metav1.PartialObjectMetadata, error) {
	resource, err := e.objects.Resource(task.Ref)
	if err != nil {
		return nil, err
	}
	meta, err := e.createOrUpdate(ctx, resource, task)
	if invalid(err) && task.Live != nil && task.Replace.due(err) {
		return e.replace(ctx, resource, task, err)
	}
	return meta, err
}

// createOrUpdate applies the object if it is still there, or still is not, as the task says. Otherwise the error wraps
// ErrChanged.
func (e *Engine) createOrUpdate(ctx context.Context, resource metadata.ResourceInterface, task Task,
) (*metav1.PartialObjectMetadata, error) {
	if task.Live == nil {
		meta, err := create(ctx, resource, task)
		if err != nil || !task.relinquishes() {
			return meta, err
		}
		return relinquish(ctx, resource, task, meta), nil
	}
	due, onChange, err := withOnlyOnChange(ctx, resource, task)
	if err != nil {
		return nil, changed(err)
	}
	due, fromZero, err := withReplicas(due)
	if err != nil {
		return nil, err
	}
	meta, err := e.update(ctx, resource, due, fromZero)
	if err != nil {
		return nil, err
	}
	if onChange || fromZero {
		meta = relinquish(ctx, resource, task, meta)
	}
	return strip(ctx, resource, meta, task.Strip)
}

// update applies an object that exists. It fails if the object is another one than was found, or, if exact is set, has changed since.
func (e *Engine) update(ctx context.Context, resource metadata.ResourceInterface, task Task, exact bool,
) (*metav1.PartialObjectMetadata, error) {
	body, err := e.preserve(ctx, resource, task)
	if err != nil {
		return nil, err
	}
	body = object.Require(body, "uid", string(task.Live.UID))
	if err := e.takeOverFirst(ctx, resource, task); err != nil {
		return nil, changed(err)
	}
	first := body
	if exact {
		first = object.Require(body, "resourceVersion", task.Live.ResourceVersion)
	}
	meta, err := patch(ctx, resource, task.Name, first)
	if invalid(err) {
		meta, err = e.applyWithoutOthers(ctx, resource, task, body, err)
	}
	if err != nil {
		return nil, changed(err)
	}
	return e.takeOver(ctx, resource, task, meta, body)
}

// create applies an object that does not exist. If it does, nothing happens to it.
func create(ctx context.Context, resource metadata.ResourceInterface, task Task) (*metav1.PartialObjectMetadata, error) {
	// The API server ignores the resourceVersion of an object that it creates, and answers "conflict" if there is one
	// whose resourceVersion differs. No object has this one: etcd counts from 2.
	meta, err := patch(ctx, resource, task.Name, object.Require(task.initialBody(), "resourceVersion", "1"))
	return meta, changed(err)
}

// initialBody is what is sent to create the object.
func (t Task) initialBody() []byte {
	if t.Initial != nil {
		return t.Initial
	}
	return t.Body
}

// changed marks the errors that say that an object is not, or no longer, the one that was expected.
func changed(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) && concernsUID(err) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// concernsUID reports whether the API server found the UID of an object to be another one.
func concernsUID(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && cause.Field == "metadata.uid"
}

func patch(ctx context.Context, resource metadata.ResourceInterface, name string, body []byte) (*metav1.PartialObjectMetadata, error) {
	return resource.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: resourcesv1alpha1.FieldManager,
		Force:        ptr.To(true),
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

// ErrChanged says that nothing was done about an object because it is no longer as it was when that was decided.
var ErrChanged = errors.New("the object has changed")

// Deleted is what became of one object that was to be deleted.
type Deleted struct {
	// Gone says that the object is gone. Otherwise its deletion has begun.
	Gone bool
	// Observation is the object whose deletion has begun.
	Observation live.Observation
	// Err says why the object was not deleted. It wraps ErrChanged if the object changed meanwhile, and was left alone.
	Err error
}

// Delete asks the API server to delete every object that is still as the deletion describes it, and returns one outcome
// per deletion.
func (e *Engine) Delete(ctx context.Context, deletions []Deletion) []Deleted {
	outcomes := make([]Deleted, len(deletions))
	e.forEach(len(deletions), func(i int) {
		left, err := e.delete(ctx, deletions[i])
		switch {
		case apierrors.IsNotFound(err), err == nil && left == nil:
			outcomes[i].Gone = true
		case err != nil:
			outcomes[i].Err = fmt.Errorf("delete %s: %w", deletions[i].Ref, changed(redactWebhookMessage(deletions[i].Ref, true, err)))
		default:
			outcomes[i].Observation = live.Observe(left, e.Policy)
		}
	})
	return outcomes
}

func (e *Engine) delete(ctx context.Context, deletion Deletion) (left *metav1.PartialObjectMetadata, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	if deletion.GroupKind() == object.Definition {
		e.openStorage(ctx, deletion)
	}
	if deletion.Claims {
		if err := e.objects.DeleteClaims(ctx, deletion.Namespace, deletion.Name, deletion.UID); err != nil {
			return nil, fmt.Errorf("delete its PersistentVolumeClaims: %w", err)
		}
	}
	left, err = e.objects.Delete(ctx, deletion.Ref, metav1.DeleteOptions{
		PropagationPolicy: propagation(deletion.Group),
		Preconditions:     &metav1.Preconditions{UID: &deletion.UID, ResourceVersion: &deletion.ResourceVersion},
	})
	return left, e.objects.Explain(deletion.Ref, err)
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
// caller, with the stack of the call, where it ends one reconcile and not the process.
func (e *Engine) forEach(count int, do func(i int)) {
	var group sync.WaitGroup
	panics := make(chan string, count)
	for i := range count {
		e.slots <- struct{}{}
		group.Go(func() {
			defer func() {
				<-e.slots
				if cause := recover(); cause != nil {
					panics <- fmt.Sprintf("%v\n%s", cause, debug.Stack())
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
