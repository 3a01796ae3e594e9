package bundles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// emit emits a plan and returns its progress.
func (a *Actuator[T]) emit(ctx context.Context, object T, plan flow.Plan) (extension.Result, error) {
	owner, now := a.owner(object), a.deployer.options.Clock.Now()
	emitted, err := a.deployer.emitter.Emit(ctx, owner, plan)
	if err != nil {
		return extension.Result{}, err
	}
	operation := flow.Operation{Name: "deployment", Type: corev1beta1.LastOperationTypeReconcile}
	if last := object.GetExtensionStatus().LastOperation; last != nil {
		operation.Type = last.Type
	}
	return resultOf(flow.Progress(operation, owner, emitted, now), emitted.Plan.NextAt(now), now)
}

// resultOf converts a report to a result. next is when the plan must be made again, or zero for never.
func resultOf(report flow.Report, next, now time.Time) (extension.Result, error) {
	again := time.Duration(0)
	if !next.IsZero() {
		again = next.Sub(now)
	}
	if len(report.LastErrors) > 0 {
		return extension.Result{}, errorOf(report.LastErrors)
	}
	if report.LastOperation.State == corev1beta1.LastOperationStateSucceeded {
		return extension.Result{Again: again}, nil
	}
	result := extension.Wait(again, "not finished: %s", report.LastOperation.Description)
	result.Progress = max(report.LastOperation.Progress, 1)
	return result, nil
}

// errorOf joins the errors of ManagedResources, with their codes.
func errorOf(all []corev1beta1.LastError) error {
	texts, codes := make([]string, 0, len(all)), []corev1beta1.ErrorCode{}
	for _, one := range all {
		text := one.Description
		if one.TaskID != nil {
			text = *one.TaskID + ": " + text
		}
		texts, codes = append(texts, text), append(codes, one.Codes...)
	}
	return extension.WithCodes(errors.New(strings.Join(texts, "; ")), codes...)
}

// remove deletes all ManagedResources of an object. It calls prepare, unless it is nil, for those of the Shoot before.
func (a *Actuator[T]) remove(
	ctx context.Context, object T, prepare func(context.Context, *resourcesv1alpha1.ManagedResource) error,
) (extension.Result, error) {
	owner := a.owner(object)
	plan := flow.Plan{Deleting: true}
	live, err := flow.Observe(ctx, a.deployer.emitter.Reader, owner, plan)
	if err != nil {
		return extension.Result{}, err
	}
	for _, key := range slices.SortedFunc(maps.Keys(live.ManagedResources), flow.Key.Compare) {
		mr := live.ManagedResources[key]
		plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key})
		if prepare != nil && isOfShoot(mr) {
			if err := prepare(ctx, mr); err != nil {
				return extension.Result{}, err
			}
		}
	}
	if len(plan.Tombstones) > 0 {
		emitted, err := a.deployer.emitter.Emit(ctx, owner, plan)
		if err != nil {
			return extension.Result{}, err
		}
		return deletionOf(emitted)
	}
	// The cache may not contain objects that were just emitted.
	left, err := flow.Remaining(ctx, a.deployer.uncached, owner)
	if err == nil && len(left) == 0 && a.deployer.options.Namespace != "" {
		// They may contain credentials of machines, and no namespace is deleted with them.
		err = flow.DeleteManifests(ctx, a.deployer.uncached, a.deployer.client, a.deployer.options.Namespace, owner.Labels())
	}
	if err != nil || len(left) == 0 {
		return extension.Result{}, err
	}
	return extension.Wait(time.Second, "%d ManagedResources are left", len(left)), nil
}

// deletionOf returns the progress of a deletion. It ignores the health of objects that are deleted later.
func deletionOf(emitted flow.Result) (extension.Result, error) {
	var failed []corev1beta1.LastError
	names := make([]string, 0, len(emitted.Live.ManagedResources))
	for _, key := range slices.SortedFunc(maps.Keys(emitted.Live.ManagedResources), flow.Key.Compare) {
		mr := emitted.Live.ManagedResources[key]
		names = append(names, key.Name)
		applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
		if mr.DeletionTimestamp != nil && applied.Reason == resourcesv1alpha1.ReasonDeletionFailed {
			failed = append(failed, corev1beta1.LastError{TaskID: &names[len(names)-1], Description: applied.Message, Codes: flow.CodesOfWrite(applied.Message)})
		}
	}
	if len(failed) > 0 {
		return extension.Result{}, errorOf(failed)
	}
	return extension.Wait(0, "ManagedResources are being deleted: %s", strings.Join(names, ", ")), nil
}

// keepObjects retains the objects of a ManagedResource when it is deleted. The API server stores this before the deletion.
func (a *Actuator[T]) keepObjects(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	if mr.Spec.KeepObjects != nil && *mr.Spec.KeepObjects {
		return nil
	}
	return a.patch(ctx, mr, `{"spec":{"keepObjects":true}}`)
}

// giveUp removes the finalizers of a ManagedResource that is being deleted, because its resource-manager can no longer
// access an API server.
func (a *Actuator[T]) giveUp(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	if mr.DeletionTimestamp == nil || len(mr.Finalizers) == 0 {
		return a.keepObjects(ctx, mr)
	}
	return a.patch(ctx, mr, `{"metadata":{"finalizers":null}}`)
}

// patch patches a ManagedResource without modifying the cached object.
func (a *Actuator[T]) patch(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, patch string) error {
	target := &resourcesv1alpha1.ManagedResource{}
	target.Namespace, target.Name = mr.Namespace, mr.Name
	apply := client.RawPatch(types.MergePatchType, []byte(patch))
	err := a.deployer.client.Patch(ctx, target, apply, client.FieldOwner(a.deployer.options.Name))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("prepare the deletion of ManagedResource %s: %w", client.ObjectKeyFromObject(mr), err)
	}
	return nil
}
