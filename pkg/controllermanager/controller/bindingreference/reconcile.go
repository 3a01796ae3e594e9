package bindingreference

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/bindings"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// missingPeriod is the time after which a missing object is looked for again to which a binding refers. Objects without labels are not
// watched.
const missingPeriod = 2 * time.Minute

// reconciler labels and keeps the objects of one kind.
type reconciler struct {
	kind schema.GroupVersionKind
	// marked are caches of the metadata of objects that have the label of a kind of bindings.
	marked []client.Reader
	// client reads bindings from its cache, live reads from the API server.
	client client.Client
	live   client.Reader
}

// Reconcile writes the labels and finalizers of an object. Only the API server knows that no binding refers to an object that is being
// deleted: in all other cases, a finalizer that was removed too early is added again.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	reference := bindings.Reference{Kind: r.kind.Kind, NamespacedName: request.NamespacedName}
	use, err := useOf(ctx, r.client, reference, client.MatchingFields{indexReferences: keyOf(reference)})
	if err != nil {
		return reconcile.Result{}, err
	}
	object, err := r.read(ctx, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	if object == nil {
		if use.Any() {
			return reconcile.Result{RequeueAfter: missingPeriod}, nil
		}
		return reconcile.Result{}, nil
	}
	labels, finalizers := Decide(r.kind.Kind, &object.ObjectMeta, use)
	if object.DeletionTimestamp != nil && releases(object.Finalizers, finalizers) {
		if use, err = useOf(ctx, r.live, reference); err != nil {
			return reconcile.Result{}, err
		}
		labels, finalizers = Decide(r.kind.Kind, &object.ObjectMeta, use)
	}
	if maps.Equal(labels, object.Labels) && slices.Equal(finalizers, object.Finalizers) {
		return reconcile.Result{}, nil
	}
	before := object.DeepCopy()
	object.Labels, object.Finalizers = labels, finalizers
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.client.Patch(ctx, object, patch, controller.FieldManager)); err != nil {
		return reconcile.Result{}, fmt.Errorf("change labels and finalizers of %s %s, to which bindings refer: %w", r.kind.Kind, request, err)
	}
	return reconcile.Result{}, nil
}

// read returns the metadata of an object, or nil if it does not exist. The caches do not have objects without labels.
func (r *reconciler) read(ctx context.Context, request reconcile.Request) (*metav1.PartialObjectMetadata, error) {
	for _, reader := range append(slices.Clone(r.marked), r.live) {
		object := watches.Metadata(r.kind)
		err := reader.Get(ctx, request.NamespacedName, object)
		if err == nil {
			return object, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the metadata of %s %s: %w", r.kind.Kind, request, err)
		}
	}
	return nil, nil
}

// useOf returns how bindings use an object.
func useOf(ctx context.Context, reader client.Reader, object bindings.Reference, options ...client.ListOption) (bindings.Use, error) {
	var (
		secrets     corev1beta1.SecretBindingList
		credentials securityv1alpha1.CredentialsBindingList
	)
	options = append(options, client.UnsafeDisableDeepCopy)
	if err := errors.Join(reader.List(ctx, &secrets, options...), reader.List(ctx, &credentials, options...)); err != nil {
		return bindings.Use{}, fmt.Errorf("list the bindings that may refer to %s %s: %w", object.Kind, object.NamespacedName, err)
	}
	return bindings.UseOf(object, secrets.Items, credentials.Items), nil
}
