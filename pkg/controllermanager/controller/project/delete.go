package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/projectuse"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	// recheck is the time between two looks at a Project that is being deleted. It reads the cache.
	recheck = time.Minute
	// listed is the number of objects that an Event names.
	listed = 5
)

// delete deletes or releases the namespace of a Project that is being deleted, as soon as nothing uses it, then the rights of the
// members, and then lets the Project go.
func (r *reconciler) delete(ctx context.Context, project *corev1beta1.Project) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(project, constants.GardenerName) {
		return reconcile.Result{}, nil
	}
	left, err := r.releaseNamespace(ctx, project)
	if err != nil {
		if !apierrors.IsConflict(err) {
			r.recorder.Eventf(project, nil, corev1.EventTypeWarning, reasonDeletion, actionDelete, "%s", conditiontext.ForEvent(err.Error()))
		}
		return reconcile.Result{}, err
	}
	if left {
		_, err := r.setPhase(ctx, project, corev1beta1.ProjectTerminating)
		return reconcile.Result{RequeueAfter: recheck}, err
	}
	if err := r.grant(ctx, project, granted{}); err != nil {
		return reconcile.Result{}, err
	}
	_, err = r.holder().Release(ctx, project, constants.GardenerName, func(context.Context, client.Reader) ([]string, error) { return nil, nil })
	return reconcile.Result{}, err
}

// releaseNamespace deletes the namespace of a Project, or releases it if it is to be kept. It reports whether the namespace is left:
// it is in use, or its deletion has not ended. What uses it, and the namespace itself, are read from the API server before: a cache
// may lack a new Shoot, whose credentials would be deleted.
func (r *reconciler) releaseNamespace(ctx context.Context, project *corev1beta1.Project) (left bool, err error) {
	name := namespaceOf(project)
	cached := watches.MetadataOf("Namespace")
	switch err := r.client.Get(ctx, client.ObjectKey{Name: name}, cached); {
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("read Namespace %s: %w", name, err)
	case err == nil && belongs(cached, project) && cached.DeletionTimestamp == nil:
		if used, err := r.used(ctx, r.client, project, keeps(cached)); used || err != nil {
			return used, errors.Join(err, r.grant(ctx, project, grantedTo(project))) // members may lose their rights meanwhile
		}
	}
	namespace := watches.MetadataOf("Namespace")
	switch err := r.live.Get(ctx, client.ObjectKey{Name: name}, namespace); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read Namespace %s: %w", name, err)
	case !belongs(namespace, project):
		return false, nil
	case namespace.DeletionTimestamp != nil:
		return true, nil
	}
	if used, err := r.used(ctx, r.live, project, keeps(namespace)); used || err != nil {
		return used, err
	}
	if keeps(namespace) {
		before := namespace.DeepCopy()
		release(namespace, project)
		return false, r.patchNamespace(ctx, before, namespace)
	}
	condition := client.Preconditions{UID: &namespace.UID, ResourceVersion: &namespace.ResourceVersion}
	if err := client.IgnoreNotFound(r.client.Delete(ctx, namespace, condition)); err != nil {
		return false, fmt.Errorf("delete Namespace %s: %w", name, err)
	}
	r.recorder.Eventf(project, nil, corev1.EventTypeNormal, reasonDeleted, actionDelete, "Namespace %s is being deleted.", name)
	return true, nil
}

// used reports whether the namespace of a Project is in use, and writes an Event about it. If the namespace is kept, so are the
// objects that are used elsewhere.
func (r *reconciler) used(ctx context.Context, reader client.Reader, project *corev1beta1.Project, kept bool) (bool, error) {
	use, err := projectuse.Of(ctx, reader, namespaceOf(project))
	if err != nil {
		return false, err
	}
	users := use.Shoots
	if !kept {
		users = append(users, use.Others...)
	}
	if len(users) == 0 {
		return false, nil
	}
	slices.Sort(users)
	more := ""
	if len(users) > listed {
		more = fmt.Sprintf(" and %d more", len(users)-listed)
		users = users[:listed]
	}
	r.recorder.Eventf(project, nil, corev1.EventTypeWarning, reasonNotEmpty, actionDelete, "%s", conditiontext.ForEvent(
		fmt.Sprintf("Namespace %s is in use, delete first: %s%s", namespaceOf(project), strings.Join(users, ", "), more)))
	return true, nil
}
