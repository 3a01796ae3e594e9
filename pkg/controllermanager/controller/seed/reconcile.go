package seed

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Reasons of Events.
//
// +events:on=Seed
const (
	reasonForeign = "NamespaceConflict" // Warning: the namespace of the Seed in the garden exists and does not belong to it
)

// action is the action of these Events.
const action = "CreateNamespace"

// reconciler maintains the namespaces of Seeds.
type reconciler struct {
	// secrets is a cache of the Secrets with a role. garden reads the metadata of namespaces from the cache, and writes.
	secrets  client.Reader
	garden   client.Client
	recorder events.EventRecorder
}

// ofNamespace returns a request for the Seed with a namespace.
func ofNamespace(_ context.Context, namespace client.Object) []reconcile.Request {
	return controller.Requests(strings.TrimPrefix(namespace.GetName(), constants.PrefixSeedNamespace))
}

// affected returns requests for the Seeds that need a Secret: all, or that of a copy.
func (r *reconciler) affected(ctx context.Context, object client.Object) []reconcile.Request {
	if ofSeed(object.GetNamespace()) {
		return controller.Requests(strings.TrimPrefix(object.GetNamespace(), constants.PrefixSeedNamespace))
	}
	if object.GetNamespace() != constants.GardenNamespace {
		return nil
	}
	var seeds corev1beta1.SeedList
	if err := r.garden.List(ctx, &seeds, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all Seeds once it has
	}
	names := make([]string, 0, len(seeds.Items))
	for i := range seeds.Items {
		names = append(names, seeds.Items[i].Name)
	}
	return controller.Requests(names...)
}

// Reconcile maintains the namespace of a Seed and the copies in it. It reads from caches. The API server deletes the namespace
// after the Seed, which owns it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.garden.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ready, err := r.ensureNamespace(ctx, seed)
	if err != nil || !ready {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.copy(ctx, constants.PrefixSeedNamespace+seed.Name)
}

// ensureNamespace creates or adopts the namespace of a Seed. ready is false if it is not in the cache yet, or is being deleted: the
// watch reports when that changes.
func (r *reconciler) ensureNamespace(ctx context.Context, seed *corev1beta1.Seed) (ready bool, err error) {
	wanted, live := namespaceOf(seed), watches.MetadataOf("Namespace")
	err = r.garden.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	switch {
	case apierrors.IsNotFound(err) && seed.DeletionTimestamp == nil:
		if err := client.IgnoreAlreadyExists(r.garden.Create(ctx, wanted, controller.FieldManager)); err != nil {
			return false, fmt.Errorf("create namespace %s: %w", wanted.Name, err)
		}
		log.FromContext(ctx).Info("Created the namespace of a Seed", "namespace", wanted.Name)
		return false, nil
	case err != nil:
		return false, client.IgnoreNotFound(err)
	case live.DeletionTimestamp != nil:
		return false, nil
	}
	before := live.DeepCopy()
	changed, err := adopt(live, seed)
	if err != nil {
		r.recorder.Eventf(seed, nil, corev1.EventTypeWarning, reasonForeign, action, "%s", err)
		return false, err
	}
	if changed {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.garden.Patch(ctx, live, patch, controller.FieldManager); err != nil {
			return false, fmt.Errorf("adopt namespace %s: %w", live.Name, err)
		}
	}
	return true, nil
}

// copy writes and deletes the copies in the namespace of a Seed.
func (r *reconciler) copy(ctx context.Context, namespace string) error {
	var originals, copies corev1.SecretList
	if err := errors.Join(
		r.secrets.List(ctx, &originals, client.InNamespace(constants.GardenNamespace)),
		r.secrets.List(ctx, &copies, client.InNamespace(namespace)),
	); err != nil {
		return fmt.Errorf("read the Secrets with a role: %w", err)
	}
	needed := decide(namespace, originals.Items, copies.Items)
	var errs []error
	for i := range needed.create {
		// If it exists, the cache does not contain it yet, or it has no role: a Secret of others is not replaced.
		errs = append(errs, describe(&needed.create[i], r.garden.Create(ctx, &needed.create[i], controller.FieldManager)))
	}
	for i := range needed.update {
		errs = append(errs, describe(&needed.update[i], r.garden.Update(ctx, &needed.update[i], controller.FieldManager)))
	}
	for i := range needed.remove {
		uid := needed.remove[i].UID
		err := r.garden.Delete(ctx, &needed.remove[i], client.Preconditions{UID: &uid})
		errs = append(errs, describe(&needed.remove[i], client.IgnoreNotFound(err)))
	}
	return errors.Join(errs...)
}

func describe(secret *corev1.Secret, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("copy Secret %s to namespace %s: %w", secret.Name, secret.Namespace, err)
}
