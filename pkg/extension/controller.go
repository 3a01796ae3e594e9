package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// fieldManager is the field manager of the controller.
	fieldManager = "gardener-extension"
	// conflictRetry is the delay after a conflict with another writer.
	conflictRetry = 100 * time.Millisecond
)

// controllerOf runs the operations of objects of one kind and type.
type controllerOf[T extensionsv1alpha1.Object] struct {
	kind     kind
	actuator Actuator[T]
	options  Options
	// client reads from a cache. uncached reads from the API server.
	client   client.Client
	uncached client.Reader
}

// Reconcile runs the operation that is due for an object. It is called if an operation is requested or not finished, or
// if a source of the actuator triggers it.
func (c *controllerOf[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, err := newObject[T]()
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := c.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !Responsible(object, c.options.Type, c.options.Classes) {
		return reconcile.Result{}, nil
	}
	operation := decide(object, c.kind.finalizer)
	if operation == "" {
		return reconcile.Result{}, nil
	}
	cluster, clusterErr := ClusterOf(ctx, c.client, object)
	if cluster != nil && (cluster.Failed() || cluster.Ignored()) {
		return reconcile.Result{}, nil // the watch of the Cluster triggers it later
	}
	quiet := unasked(object, c.options.IgnoreOperationAnnotation)
	asked := operationOf(object)
	if quiet && object.GetExtensionStatus().ObservedGeneration != object.GetGeneration() {
		return reconcile.Result{}, nil // the specification has changed, but gardenlet has not requested an operation yet
	}
	if !quiet {
		err := c.begin(ctx, object, operation)
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictRetry}, nil // the cache is outdated
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	live, is := object.DeepCopyObject().(T)
	if !is {
		return reconcile.Result{}, fmt.Errorf("the copy of a %T is a %T", object, live)
	}
	result, failed := Result{}, clusterErr
	if failed == nil {
		result, failed = c.act(ctx, object, cluster, operation)
	}
	if err := c.store(ctx, live, object, operation, result, failed, quiet); err != nil {
		return reconcile.Result{}, errors.Join(err, failed)
	}
	if failed != nil {
		return retry(ctx, failed)
	}
	if result.Waiting == "" {
		if err := c.end(ctx, object, operation, asked); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: result.Again}, nil
}

// retry returns when a failed call is repeated.
func retry(ctx context.Context, failed error) (reconcile.Result, error) {
	if codes := Codes(failed); isFinal(codes) {
		log.FromContext(ctx).Error(failed, "The operation failed, and a retry cannot help", "codes", codes, "again", finalRetry.String())
		return reconcile.Result{RequeueAfter: finalRetry}, nil
	}
	return reconcile.Result{}, failed
}

// begin reports the start of an operation before it removes the annotation that requests it, so that no request is lost
// if the process ends between the two writes. Both writes fail if the object has changed since it was read.
func (c *controllerOf[T]) begin(ctx context.Context, object T, operation corev1beta1.LastOperationType) error {
	if !announced(object, operation) {
		before, err := lockedPatch(object)
		if err != nil {
			return err
		}
		reportBegun(object, operation, c.options.Clock.Now())
		if err := c.client.Status().Patch(ctx, object, before, client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("report the start of an operation: %w", err)
		}
	}
	err := c.patchMeta(ctx, object, func() bool {
		changed := false
		if operation != corev1beta1.LastOperationTypeMigrate && object.GetDeletionTimestamp() == nil {
			changed = controllerutil.AddFinalizer(object, c.kind.finalizer)
		}
		if operationOf(object) == constants.OperationReconcile {
			removeOperation(object)
			changed = true
		}
		return changed
	})
	if err != nil {
		return err
	}
	if object.GetDeletionTimestamp() == nil && operation != corev1beta1.LastOperationTypeMigrate {
		return c.protectSecret(ctx, object)
	}
	return nil
}

// act calls the method of the actuator for an operation.
func (c *controllerOf[T]) act(ctx context.Context, object T, cluster *Cluster, operation corev1beta1.LastOperationType) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	switch operation {
	case corev1beta1.LastOperationTypeDelete:
		if forced(object, cluster) {
			return c.actuator.ForceDelete(ctx, object, cluster)
		}
		return c.actuator.Delete(ctx, object, cluster)
	case corev1beta1.LastOperationTypeMigrate:
		return c.actuator.Migrate(ctx, object, cluster)
	}
	if validator, is := c.actuator.(ConfigValidator[T]); is {
		if err := configurationError(validator.Validate(ctx, object, cluster)); err != nil {
			return Result{}, err
		}
	}
	if operation == corev1beta1.LastOperationTypeRestore {
		return c.actuator.Restore(ctx, object, cluster)
	}
	return c.actuator.Reconcile(ctx, object, cluster)
}

// configurationError returns the error of a validation. Checks that could not run are not a problem of the configuration.
func configurationError(all field.ErrorList) error {
	if len(all) == 0 {
		return nil
	}
	err := fmt.Errorf("check the configuration: %w", all.ToAggregate())
	for _, one := range all {
		if one.Type != field.ErrorTypeInternal {
			return ConfigurationProblem(err)
		}
	}
	return err
}

// store writes the status if it differs from the stored one. A quiet call does not change the last operation.
func (c *controllerOf[T]) store(
	ctx context.Context, live, object T, operation corev1beta1.LastOperationType, result Result, failed error, quiet bool,
) error {
	before, status := live.GetExtensionStatus(), object.GetExtensionStatus()
	// Values of these fields that the actuator set are ignored.
	status.LastOperation, status.LastError, status.ObservedGeneration = before.LastOperation, before.LastError, before.ObservedGeneration
	object.SetGeneration(live.GetGeneration())
	if !quiet {
		report(object, operation, result, failed, c.options.Clock.Now())
	}
	patch, err := statusPatch(live, object)
	if err != nil || patch == nil {
		return err
	}
	if err := c.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // a finalizer was removed by hand
		}
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// statusPatch returns the difference between two statuses, or nil if they are equal.
func statusPatch(live, object client.Object) ([]byte, error) {
	whole, err := client.MergeFrom(live).Data(object)
	if err != nil {
		return nil, fmt.Errorf("compare the status: %w", err)
	}
	var patch struct {
		Status json.RawMessage `json:"status,omitempty"`
	}
	if err := json.Unmarshal(whole, &patch); err != nil {
		return nil, fmt.Errorf("compare the status: %w", err)
	}
	if len(patch.Status) == 0 {
		return nil, nil
	}
	return json.Marshal(patch)
}

// end removes the finalizer after a deletion or migration, and the annotation of an operation that remains until it has succeeded.
func (c *controllerOf[T]) end(ctx context.Context, object T, operation corev1beta1.LastOperationType, asked string) error {
	releases := operation == corev1beta1.LastOperationTypeDelete || operation == corev1beta1.LastOperationTypeMigrate
	if releases {
		if err := c.releaseSecret(ctx, object); err != nil {
			return err
		}
	}
	return c.patchMeta(ctx, object, func() bool {
		changed := false
		if releases {
			changed = controllerutil.RemoveFinalizer(object, c.kind.finalizer)
		}
		if operationOf(object) == asked && (asked == constants.OperationMigrate || asked == constants.OperationRestore) {
			removeOperation(object)
			changed = true
		}
		return changed
	})
}

// patchMeta changes the metadata. It fails if the object has changed since it was read.
func (c *controllerOf[T]) patchMeta(ctx context.Context, object T, change func() bool) error {
	patch, err := lockedPatch(object)
	if err != nil {
		return err
	}
	if !change() {
		return nil
	}
	if err := client.IgnoreNotFound(c.client.Patch(ctx, object, patch, client.FieldOwner(fieldManager))); err != nil {
		return fmt.Errorf("write finalizers and annotations: %w", err)
	}
	return nil
}

// lockedPatch returns a patch relative to the current state of an object. It fails if the stored object has changed since it was read.
func lockedPatch(object client.Object) (client.Patch, error) {
	before, is := object.DeepCopyObject().(client.Object)
	if !is {
		return nil, fmt.Errorf("the copy of a %T is not an object", object)
	}
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), nil
}

// removeOperation removes the annotation that requests an operation.
func removeOperation(object client.Object) {
	annotations := object.GetAnnotations()
	delete(annotations, constants.AnnotationGardenerOperation)
	object.SetAnnotations(annotations)
}
