package registry

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"
)

// claimFunc is Kind.Claim for any type. It is nil for kinds that claim nothing; old is nil for a create.
type claimFunc func(ctx context.Context, updated, old runtime.Object) (undo func(context.Context) error, err error)

func (k *Kind[T]) claim() claimFunc {
	if k.Claim == nil {
		return nil
	}
	return func(ctx context.Context, updated, old runtime.Object) (func(context.Context) error, error) {
		var before T
		if old != nil {
			before = old.(T)
		}
		return k.Claim(ctx, updated.(T), before)
	}
}

// Create stores a new object.
func (s *Storage[T]) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	claim := s.kind.claim()
	if claim == nil || options != nil && dryrun.IsDryRun(options.DryRun) {
		return s.Store.Create(ctx, object, validate, options)
	}
	taken := &taken{claim: claim}
	created, err := s.Store.Create(ctx, object, func(ctx context.Context, object runtime.Object) error {
		if err := validate(ctx, object); err != nil {
			return err
		}
		return taken.take(ctx, object, nil)
	}, options)
	return created, taken.end(ctx, err)
}

// Update implements rest.Updater.
func (s *Storage[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc,
	validateUpdate rest.ValidateObjectUpdateFunc, create bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.kind.claim().update(ctx, options, validateUpdate, func(validateUpdate rest.ValidateObjectUpdateFunc) (runtime.Object, bool, error) {
		return s.Store.Update(ctx, name, info, validateCreate, validateUpdate, create, options)
	})
}

// update runs an update that claims what the new object has after the validation, which can run several times.
func (c claimFunc) update(ctx context.Context, options *metav1.UpdateOptions, validate rest.ValidateObjectUpdateFunc,
	run func(rest.ValidateObjectUpdateFunc) (runtime.Object, bool, error),
) (runtime.Object, bool, error) {
	if c == nil || options != nil && dryrun.IsDryRun(options.DryRun) {
		return run(validate)
	}
	taken := &taken{claim: c}
	updated, created, err := run(func(ctx context.Context, object, old runtime.Object) error {
		if err := validate(ctx, object, old); err != nil {
			return err
		}
		return taken.take(ctx, object, old)
	})
	return updated, created, taken.end(ctx, err)
}

// taken is what a request has claimed.
type taken struct {
	claim claimFunc
	undo  func(context.Context) error
}

// take claims what an object has. What an earlier attempt of the same request claimed is given back before: that attempt stored nothing.
func (t *taken) take(ctx context.Context, object, old runtime.Object) (err error) {
	t.giveBack(ctx)
	t.undo, err = t.claim(ctx, object, old)
	return err
}

func (t *taken) giveBack(ctx context.Context) {
	if t.undo == nil {
		return
	}
	if err := t.undo(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot give back what a refused object claimed; others can claim it in some minutes")
	}
	t.undo = nil
}

// end returns the error of a request. It gives back what the request claimed if the error says that nothing was stored.
func (t *taken) end(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	if err != nil && errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError {
		t.giveBack(ctx)
	}
	return err
}

// release is the hook of the store that runs after the deletion of an object.
func (k *Kind[T]) release(object runtime.Object, options *metav1.DeleteOptions) {
	if options != nil && dryrun.IsDryRun(options.DryRun) {
		return
	}
	ctx := context.Background()
	deleted, ok := object.(T)
	if !ok {
		return
	}
	if err := k.Release(ctx, deleted); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot give back what a deleted object claimed; others can claim it nevertheless")
	}
}
