package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/finalizer"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Reasons of Events.
//
// +events:on=Project
const (
	reasonReady    = "NamespaceReconcileSuccessful" // Normal: the Project has its namespace, rights and quota
	reasonFailed   = "NamespaceReconcileFailed"     // Warning: the namespace, the rights or the quota of the Project could not be made
	reasonNotEmpty = "NamespaceNotEmpty"            // Warning: the Project is not deleted yet, because its namespace is in use
	reasonDeletion = "NamespaceDeletionFailed"      // Warning: the namespace of a Project that is being deleted could not be deleted or released
	reasonDeleted  = "NamespaceMarkedForDeletion"   // Normal: the namespace is being deleted with its Project
)

// Actions of Events.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

// reconciler makes what Projects consist of. client reads from the cache and writes; live reads from the API server.
type reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	quotas   []v1alpha1.QuotaConfiguration
}

// Reconcile makes the namespace, the quota and the rights of a Project, or deletes them. It reads from the cache, and sends no
// requests if nothing has to be done.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	project := &corev1beta1.Project{}
	if err := r.client.Get(ctx, request.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if project.DeletionTimestamp != nil {
		return r.delete(ctx, project)
	}
	if err := r.holder().Add(ctx, project, constants.GardenerName); err != nil {
		return reconcile.Result{}, err
	}
	if project.Status.Phase == "" {
		if _, err := r.setPhase(ctx, project, corev1beta1.ProjectPending); err != nil {
			return reconcile.Result{}, err
		}
	}
	err := r.make(ctx, project)
	switch {
	case err == nil:
		written, err := r.setPhase(ctx, project, corev1beta1.ProjectReady)
		if written {
			r.recorder.Eventf(project, nil, corev1.EventTypeNormal, reasonReady, actionReconcile, "Namespace %s is ready.", namespaceOf(project))
		}
		return reconcile.Result{}, err
	case apierrors.IsConflict(err): // the cache is older than an object: not a failure
		return reconcile.Result{}, err
	}
	r.recorder.Eventf(project, nil, corev1.EventTypeWarning, reasonFailed, actionReconcile, "%s", conditiontext.ForEvent(err.Error()))
	if isRefusal(err) { // watches report what changes it
		err = reconcile.TerminalError(err)
	}
	_, failure := r.setPhase(ctx, project, corev1beta1.ProjectFailed)
	return reconcile.Result{}, errors.Join(failure, err)
}

// make makes the namespace, the quota and the rights of a Project.
func (r *reconciler) make(ctx context.Context, project *corev1beta1.Project) error {
	if err := r.ensureNamespace(ctx, project); err != nil {
		return err
	}
	if project.Spec.Namespace == nil {
		if err := r.setNamespace(ctx, project); err != nil {
			return err
		}
	}
	return errors.Join(r.ensureQuota(ctx, project), r.grant(ctx, project, grantedTo(project)))
}

// ensureNamespace creates the namespace of a Project, or adopts an existing one.
func (r *reconciler) ensureNamespace(ctx context.Context, project *corev1beta1.Project) error {
	wanted, present := newNamespace(project), watches.MetadataOf("Namespace")
	err := r.client.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	if apierrors.IsNotFound(err) {
		err = r.client.Create(ctx, wanted, controller.FieldManager)
		if err == nil {
			return nil
		}
		if apierrors.IsAlreadyExists(err) { // the cache does not know it yet
			err = r.live.Get(ctx, client.ObjectKeyFromObject(wanted), present)
		}
	}
	if err != nil {
		return fmt.Errorf("make Namespace %s: %w", wanted.Name, err)
	}
	before := present.DeepCopy()
	changed, err := claim(present, project)
	if err != nil || !changed {
		return err
	}
	return r.patchNamespace(ctx, before, present)
}

// patchNamespace writes the metadata of a namespace. It fails if the namespace has changed since it was read: what it belongs to was
// decided from that.
func (r *reconciler) patchNamespace(ctx context.Context, before, after *metav1.PartialObjectMetadata) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, after, patch, controller.FieldManager); err != nil {
		return fmt.Errorf("change the metadata of Namespace %s: %w", after.Name, err)
	}
	return nil
}

// setNamespace writes the name of the namespace to the specification.
func (r *reconciler) setNamespace(ctx context.Context, project *corev1beta1.Project) error {
	name := namespaceOf(project)
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": project.UID, "resourceVersion": project.ResourceVersion}, "spec": map[string]any{"namespace": name},
	})
	if err != nil {
		return fmt.Errorf("encode spec.namespace: %w", err)
	}
	if err := r.client.Patch(ctx, project, client.RawPatch(types.MergePatchType, data), controller.FieldManager); err != nil {
		return fmt.Errorf("set spec.namespace to %s: %w", name, err)
	}
	return nil
}

// ensureQuota writes the ResourceQuota of the namespace, if one is configured for the Project.
func (r *reconciler) ensureQuota(ctx context.Context, project *corev1beta1.Project) error {
	configured, err := quotaOf(project, r.quotas)
	if err != nil || configured == nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespaceOf(project), Name: quotaName}
	present := &corev1.ResourceQuota{}
	switch err := r.client.Get(ctx, key, present); {
	case apierrors.IsNotFound(err):
		present = nil
	case err != nil:
		return fmt.Errorf("read ResourceQuota %s: %w", key, err)
	}
	quota, changed := mergeQuota(project, configured, present)
	switch {
	case !changed:
		return nil
	case present == nil:
		err = r.client.Create(ctx, quota, controller.FieldManager)
	default:
		err = r.client.Update(ctx, quota, controller.FieldManager)
	}
	if err != nil {
		return fmt.Errorf("write ResourceQuota %s: %w", key, err)
	}
	return nil
}

// setPhase writes the phase and the observed generation if they differ, and reports whether it has. It fails if the Project has changed
// since it was read: from an old state, a phase would be written twice, and with it its Event. client-go writes a repeated Event
// again after six minutes.
func (r *reconciler) setPhase(ctx context.Context, project *corev1beta1.Project, phase corev1beta1.ProjectPhase) (written bool, err error) {
	if project.Status.Phase == phase && project.Status.ObservedGeneration == project.Generation {
		return false, nil
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": project.UID, "resourceVersion": project.ResourceVersion},
		"status":   map[string]any{"phase": phase, "observedGeneration": project.Generation},
	})
	if err != nil {
		return false, fmt.Errorf("encode status.phase: %w", err)
	}
	err = r.client.Status().Patch(ctx, project, client.RawPatch(types.MergePatchType, data), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("set status.phase to %s: %w", phase, err)
	}
	return err == nil, nil
}

func (r *reconciler) holder() finalizer.Holder {
	return finalizer.Holder{Client: r.client, Uncached: r.live, Owner: controller.FieldManager}
}
