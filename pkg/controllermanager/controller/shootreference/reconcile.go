package shootreference

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/references"
	"github.com/trellis-k8s/trellis/pkg/finalizer"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// protector adds and releases the finalizer of the objects of one kind.
type protector struct {
	client client.Client
	live   client.Reader
	holder finalizer.Holder
	kind   string

	mutex sync.Mutex
	// known are the objects that had the finalizer at the start. They need no read when the cache reports their Shoots the first time.
	known map[types.NamespacedName]bool
	// missing are the objects that Shoots name and that do not exist.
	missing map[types.NamespacedName]bool
}

// Reconcile adds the finalizer to an object that a Shoot names, and releases it if none does.
func (p *protector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var shoots corev1beta1.ShootList
	err := p.client.List(ctx, &shoots, client.InNamespace(request.Namespace),
		client.MatchingFields{indexReference: reference{p.kind, request.Name}.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("list the Shoots that name the %s %s: %w", p.kind, request, err)
	}
	isNamed := len(shoots.Items) > 0
	if p.forget(request.NamespacedName) && isNamed {
		return reconcile.Result{}, nil
	}
	object := watches.Metadata(kinds[p.kind])
	err = p.live.Get(ctx, request.NamespacedName, object)
	switch {
	case apierrors.IsNotFound(err):
		p.note(request.NamespacedName, isNamed)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read the %s %s, which Shoots name: %w", p.kind, request, err)
	case !isNamed:
		return reconcile.Result{}, p.release(ctx, object)
	case object.DeletionTimestamp != nil:
		return reconcile.Result{}, nil // the API server refuses new finalizers
	}
	return reconcile.Result{}, p.holder.Add(ctx, object, constants.FinalizerReferenceProtection)
}

// release removes the finalizer from an object, unless something uses it.
func (p *protector) release(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	_, err := p.holder.Release(ctx, object, constants.FinalizerReferenceProtection, func(ctx context.Context, reader client.Reader) ([]string, error) {
		if object.Namespace == constants.GardenNamespace {
			return references.Users(ctx, reader, p.kind, object)
		}
		return users(ctx, reader, object.Namespace, reference{p.kind, object.Name})
	})
	return err
}

// users returns the names of the Shoots that name an object.
func users(ctx context.Context, reader client.Reader, namespace string, to reference) (names []string, err error) {
	var shoots corev1beta1.ShootList
	if err := reader.List(ctx, &shoots, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Shoots that may name the %s %s/%s: %w", to.kind, namespace, to.name, err)
	}
	for i := range shoots.Items {
		for _, one := range of(&shoots.Items[i]) {
			if one == to {
				names = append(names, shoots.Items[i].Name)
			}
		}
	}
	return names, nil
}

// forget reports whether an object had the finalizer at the start, once.
func (p *protector) forget(key types.NamespacedName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	had := p.known[key]
	delete(p.known, key)
	delete(p.missing, key)
	return had
}

// note records that an object does not exist, if a Shoot names it.
func (p *protector) note(key types.NamespacedName, isNamed bool) {
	if !isNamed {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.missing[key] = true
}

// isMissing reports whether an object did not exist when it was read last.
func (p *protector) isMissing(key types.NamespacedName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.missing[key]
}

// shootReconciler adds and releases the finalizer of Shoots.
type shootReconciler struct {
	client     client.Client
	live       client.Reader
	holder     finalizer.Holder
	protectors map[string]*protector
}

// Reconcile adds the finalizer to a Shoot that names objects. Before it removes it, it releases the objects: no other controller does that if this process was
// stopped meanwhile.
func (r *shootReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cached := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, request.NamespacedName, cached); err != nil || decide(cached) == stepNone {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot := &corev1beta1.Shoot{} // the cache lacks other finalizers, which a patch would remove
	if err := r.live.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch decide(shoot) {
	case stepAdd:
		return reconcile.Result{}, r.holder.Add(ctx, shoot, constants.FinalizerReferenceProtection)
	case stepRelease:
		if err := r.releaseAll(ctx, shoot); err != nil {
			return reconcile.Result{}, err
		}
		_, err := r.holder.Release(ctx, shoot, constants.FinalizerReferenceProtection, func(context.Context, client.Reader) ([]string, error) { return nil, nil })
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

// releaseAll releases the objects that a Shoot named until its deletion.
func (r *shootReconciler) releaseAll(ctx context.Context, shoot *corev1beta1.Shoot) error {
	var errs []error
	for _, one := range named(shoot) {
		object := watches.Metadata(kinds[one.kind])
		err := r.live.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: one.name}, object)
		if err == nil && controllerutil.ContainsFinalizer(object, constants.FinalizerReferenceProtection) {
			err = r.protectors[one.kind].release(ctx, object)
		}
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("release the %s %s that Shoot %s named: %w", one.kind, one.name, client.ObjectKeyFromObject(shoot), err))
		}
	}
	return errors.Join(errs...)
}
