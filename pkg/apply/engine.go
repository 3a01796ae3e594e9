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
	// requestsInFlight limits the concurrent writes to one target cluster, for all ManagedResources together. At this
	// number, a local API server is saturated.
	requestsInFlight = 16
	// requestTimeout limits the duration of one write. Admission webhooks may take up to 30 seconds (the limit of
	// Kubernetes).
	requestTimeout = 35 * time.Second
)

// Engine sends objects to one target cluster. It is safe for concurrent use. The limit of concurrent requests applies
// to all its users together.
type Engine struct {
	objects Cluster
	Settings
	clock clock.WithTicker
	slots chan struct{}
}

// Settings configure how an engine applies objects.
type Settings struct {
	// Policy determines the field managers whose fields are taken over.
	Policy fieldowner.Policy
	// Strict rejects objects with fields that the API server does not know. Otherwise, they are applied without these
	// fields.
	Strict bool
}

// NewEngine returns an engine that writes to the cluster of objects.
func NewEngine(objects *target.Objects, settings Settings, clk clock.WithTicker) *Engine {
	return NewEngineFor(realCluster{target.Writer{Objects: objects}}, settings, clk)
}

// NewEngineFor is NewEngine for another implementation of Cluster.
func NewEngineFor(cluster Cluster, settings Settings, clk clock.WithTicker) *Engine {
	return &Engine{objects: cluster, Settings: settings, clock: clk, slots: make(chan struct{}, requestsInFlight)}
}

// As returns an engine that impersonates a ServiceAccount of the target cluster. It shares the limit of concurrent
// requests. It is meant for one pass and must not be kept, because the number of tenants is not limited. As returns an
// error if the ServiceAccount does not exist or cannot be read.
func (e *Engine) As(ctx context.Context, serviceAccount types.NamespacedName) (*Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := e.objects.CheckServiceAccount(ctx, serviceAccount); err != nil {
		return nil, err
	}
	return e.AsDeleted(serviceAccount)
}

// AsDeleted is like As, but the ServiceAccount does not have to exist. Bindings may still grant it permissions.
func (e *Engine) AsDeleted(serviceAccount types.NamespacedName) (*Engine, error) {
	objects, err := e.objects.As(serviceAccount)
	if err != nil {
		return nil, err
	}
	return &Engine{objects: objects, Settings: e.Settings, clock: e.clock, slots: e.slots}, nil
}

// Task is an object to apply.
type Task struct {
	object.Manifest
	// Live is the existing object. It is nil if the object did not exist.
	Live *live.Observation
	// Revised is set if the manifest has changed since the object was applied.
	Revised bool
	// Strip are the labels and annotations of other clients that are removed.
	Strip Strip
	// Replace determines whether the object is deleted and created again if its update is rejected as invalid.
	Replace Replace
}

// Outcome is the result of a task.
type Outcome struct {
	object.Ref
	// Observation is the object after it was applied.
	Observation live.Observation
	// Dropped are the paths of fields that the API server does not know. The object was applied without them.
	Dropped []string
	// Err is the error that prevented the apply.
	Err error
}

// Apply sends every object by server-side apply. It returns one outcome per task, in the order of the tasks. Fields of
// other owners are taken over. If one object fails, the others are still applied.
//
// This takes one request for each object. Further requests are necessary to remove fields of other owners, or to
// preserve fields.
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
	switch {
	case undeclared(err):
		outcome.Dropped, meta, err = e.sendKnown(ctx, task, err)
	case convertsFrom(err):
		meta, err = e.sendServed(ctx, task, err)
	}
	if untypable(err) {
		meta, err = e.updateWhole(ctx, task, err)
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

// send applies the object, or replaces it if its update is invalid and the task permits that.
func (e *Engine) send(ctx context.Context, task Task) (*metav1.PartialObjectMetadata, error) {
	resource, err := e.objects.Resource(task.Ref)
	if err != nil {
		return nil, err
	}
	meta, err := e.createOrUpdate(ctx, resource, task)
	switch {
	case !invalid(err) || task.Live == nil:
		return meta, err
	case task.Replace.due(err):
		return e.replace(ctx, resource, task, err)
	case e.replaceable(ctx, task):
		return nil, fmt.Errorf("%w; if the object may be deleted and created again, set the annotation %s: \"true\" in its manifest",
			err, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate)
	}
	return nil, err
}

// createOrUpdate applies the object if its existence still matches the task. Otherwise, the error wraps ErrChanged.
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
	if due, err = e.withLiveSize(ctx, due); err != nil {
		return nil, changed(err)
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

// update applies an object that exists. It returns an error if the object was created again or, if exact is set, has
// changed since it was observed.
func (e *Engine) update(ctx context.Context, resource metadata.ResourceInterface, task Task, exact bool,
) (*metav1.PartialObjectMetadata, error) {
	body, err := e.preserve(ctx, resource, task)
	if err != nil {
		return nil, err
	}
	body = object.Require(body, "uid", string(task.Live.UID))
	if err := e.takeOverFirst(ctx, resource, task, body); err != nil {
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

// create applies an object that does not exist. If the object exists, it is not changed and create returns an error
// that wraps ErrChanged.
func create(ctx context.Context, resource metadata.ResourceInterface, task Task) (*metav1.PartialObjectMetadata, error) {
	// The API server ignores the resourceVersion of an object that it creates, and returns a conflict if an object with
	// another resourceVersion exists. No object has this one, because etcd counts from 2.
	meta, err := patch(ctx, resource, task.Name, object.Require(task.initialBody(), "resourceVersion", "1"))
	return meta, changed(err)
}

// initialBody returns the body that is sent to create the object.
func (t Task) initialBody() []byte {
	if t.Initial != nil {
		return t.Initial
	}
	return t.Body
}

// changed wraps errors with ErrChanged if they report that an object is not, or no longer, the expected one.
func changed(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || concernsUID(err) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// concernsUID reports whether the API server rejected a request because the object has another UID.
func concernsUID(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && cause.Field == "metadata.uid"
}

func patch(ctx context.Context, resource metadata.ResourceInterface, name string, body []byte, dryRun ...string,
) (*metav1.PartialObjectMetadata, error) {
	return resource.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: resourcesv1alpha1.FieldManager,
		Force:        ptr.To(true),
		DryRun:       dryRun,
	})
}

// Deletion is an object to delete, in the state on which the decision to delete it is based.
type Deletion struct {
	object.Ref
	UID             types.UID
	ResourceVersion string
	// Claims is set if the PersistentVolumeClaims of a StatefulSet are deleted before it.
	Claims bool
}

// ErrChanged is the error of a change that was not made because the object has changed since the decision.
var ErrChanged = errors.New("the object has changed")

// Deleted is the result of a deletion.
type Deleted struct {
	// Gone is set if the object no longer exists. Otherwise, its deletion has started.
	Gone bool
	// Observation is the object whose deletion has started.
	Observation live.Observation
	// Err is the error that prevented the deletion. It wraps ErrChanged if the object has changed in the meantime.
	Err error
}

// Delete deletes every object that still has the expected state. It returns one result per deletion, in the order of
// the deletions.
func (e *Engine) Delete(ctx context.Context, deletions []Deletion) []Deleted {
	outcomes := make([]Deleted, len(deletions))
	e.forEach(len(deletions), func(i int) {
		left, err := e.delete(ctx, deletions[i])
		switch {
		case apierrors.IsNotFound(err), err == nil && left == nil:
			outcomes[i].Gone = true
		case err != nil:
			err = changed(redactWebhookMessage(deletions[i].Ref, true, err))
			outcomes[i].Err = fmt.Errorf("delete %s: %w", deletions[i].Ref, err)
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

// propagation returns Foreground for workloads, so that they exist until their Pods are deleted, and nil for all
// others, which selects the default of the API server. This is as in gardener-resource-manager.
func propagation(group string) *metav1.DeletionPropagation {
	switch group {
	case "apps", "extensions", "batch":
		return ptr.To(metav1.DeletePropagationForeground)
	}
	return nil
}

// forEach calls do for 0…count-1, concurrently within the free slots. It propagates a panic of a call, with its stack,
// to the caller. There, the panic ends one reconcile and not the process.
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
