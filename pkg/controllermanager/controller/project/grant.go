package project

import (
	"context"
	"errors"
	"fmt"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// grant writes the ClusterRoles and bindings of a Project that differ, and deletes those that it should not have. It reads from the
// cache. ClusterRoles come first, so that bindings are effective as soon as they exist.
func (r *reconciler) grant(ctx context.Context, project *corev1beta1.Project, wanted granted) error {
	var (
		roles    rbacv1.ClusterRoleList
		bindings rbacv1.ClusterRoleBindingList
		local    rbacv1.RoleBindingList
	)
	own := client.MatchingLabels{constants.LabelProjectName: project.Name}
	if err := errors.Join(r.client.List(ctx, &roles, own), r.client.List(ctx, &bindings, own), r.client.List(ctx, &local, own)); err != nil {
		return fmt.Errorf("read the rights of members: %w", err)
	}
	var errs []error
	roleAt, bindingAt, localAt := byKey[rbacv1.ClusterRole](roles.Items), byKey[rbacv1.ClusterRoleBinding](bindings.Items), byKey[rbacv1.RoleBinding](local.Items)
	for i := range wanted.roles {
		want := &wanted.roles[i]
		live := take(roleAt, want)
		if live != nil && want.AggregationRule != nil && equality.Semantic.DeepEqual(live.AggregationRule, want.AggregationRule) {
			want.Rules = live.Rules // kube-controller-manager computes them
		}
		errs = append(errs, r.ensure(ctx, want, live != nil, live != nil && alike(live, want) &&
			equality.Semantic.DeepEqual(live.Rules, want.Rules) && equality.Semantic.DeepEqual(live.AggregationRule, want.AggregationRule)))
	}
	for i := range wanted.bindings {
		want := &wanted.bindings[i]
		live := take(bindingAt, want)
		if live != nil && live.RoleRef != want.RoleRef { // it is immutable
			errs, live = append(errs, r.remove(ctx, live)), nil
		}
		errs = append(errs, r.ensure(ctx, want, live != nil, live != nil && alike(live, want) && equality.Semantic.DeepEqual(live.Subjects, want.Subjects)))
	}
	for i := range wanted.local {
		want := &wanted.local[i]
		live := take(localAt, want)
		if live != nil && live.RoleRef != want.RoleRef {
			errs, live = append(errs, r.remove(ctx, live)), nil
		}
		errs = append(errs, r.ensure(ctx, want, live != nil, live != nil && alike(live, want) && equality.Semantic.DeepEqual(live.Subjects, want.Subjects)))
	}
	return errors.Join(append(errs, removeAll(ctx, r, localAt), removeAll(ctx, r, bindingAt), removeAll(ctx, r, roleAt))...)
}

// pointer is a pointer to an API object.
type pointer[T any] interface {
	*T
	client.Object
}

// byKey returns pointers to objects by namespace and name.
func byKey[T any, P pointer[T]](items []T) map[client.ObjectKey]P {
	found := make(map[client.ObjectKey]P, len(items))
	for i := range items {
		found[client.ObjectKeyFromObject(P(&items[i]))] = &items[i]
	}
	return found
}

// take removes the object with the key of another one from a map, and returns it; nil if there is none.
func take[T any, P pointer[T]](from map[client.ObjectKey]P, like P) P {
	key := client.ObjectKeyFromObject(like)
	found := from[key]
	delete(from, key)
	return found
}

// alike reports whether an object has the labels and owners of another one.
func alike(live, wanted client.Object) bool {
	return maps.Equal(live.GetLabels(), wanted.GetLabels()) && equality.Semantic.DeepEqual(live.GetOwnerReferences(), wanted.GetOwnerReferences())
}

// ensure creates or replaces an object, unless it is as wanted. No other writer adds to it. exists is what the cache knows: it does
// not know objects that have lost their label.
func (r *reconciler) ensure(ctx context.Context, wanted client.Object, exists, same bool) error {
	if same {
		return nil
	}
	replacement, ok := wanted.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %T %s: it has no metadata", wanted, wanted.GetName())
	}
	var err error
	if !exists {
		err = r.client.Create(ctx, wanted, controller.FieldManager)
	}
	if exists || apierrors.IsAlreadyExists(err) {
		err = r.client.Update(ctx, replacement, controller.FieldManager)
	}
	if apierrors.IsInvalid(err) { // roleRef is immutable; the deletion causes no event if the cache does not know the object
		if err = r.client.Delete(ctx, wanted); err == nil {
			replacement.SetResourceVersion("")
			err = r.client.Create(ctx, replacement, controller.FieldManager)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", describe(wanted), err)
	}
	log.FromContext(ctx).Info("Changed the rights of members", "object", describe(wanted))
	return nil
}

// removeAll deletes objects.
func removeAll[T any, P pointer[T]](ctx context.Context, r *reconciler, objects map[client.ObjectKey]P) error {
	var errs []error
	for _, object := range objects {
		errs = append(errs, r.remove(ctx, object))
	}
	return errors.Join(errs...)
}

// remove deletes an object.
func (r *reconciler) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	if err := client.IgnoreNotFound(r.client.Delete(ctx, object, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("delete %s: %w", describe(object), err)
	}
	log.FromContext(ctx).Info("Removed rights of members", "object", describe(object))
	return nil
}

// describe names an object for people.
func describe(object client.Object) string {
	switch object.(type) {
	case *rbacv1.ClusterRole:
		return "ClusterRole " + object.GetName()
	case *rbacv1.ClusterRoleBinding:
		return "ClusterRoleBinding " + object.GetName()
	default:
		return "RoleBinding " + client.ObjectKeyFromObject(object).String()
	}
}
