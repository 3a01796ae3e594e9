package bindingreference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/bindings"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// indexReferences finds bindings by the objects to which they refer.
const indexReferences = "references"

// kinds are the kinds to which bindings refer.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind(bindings.Secret), corev1beta1.SchemeGroupVersion.WithKind(bindings.InternalSecret),
	securityv1alpha1.SchemeGroupVersion.WithKind(bindings.WorkloadIdentity), corev1beta1.SchemeGroupVersion.WithKind(bindings.Quota),
}

// Controller returns the controllers of objects to which bindings refer.
func Controller() controller.Controller {
	values := func(object client.Object) []string {
		var keys []string
		for _, reference := range referencesOf(object) {
			keys = append(keys, keyOf(reference))
		}
		return keys
	}
	writes := []string{"get", "list", "watch", "patch"}
	return controller.Controller{
		Name: "binding-reference", Add: add,
		Keeps: []controller.Keep{controller.Whole[corev1beta1.SecretBinding](), controller.Whole[securityv1alpha1.CredentialsBinding]()},
		Indexes: []controller.Index{
			{Object: &corev1beta1.SecretBinding{}, Field: indexReferences, Values: values},
			{Object: &securityv1alpha1.CredentialsBinding{}, Field: indexReferences, Values: values},
		},
		Rights: []controller.Right{
			controller.May("labels and finalizers of credentials", "", []string{"secrets"}, writes...),
			controller.May("labels and finalizers of credentials, and labels of Quotas", corev1beta1.GroupName, []string{"internalsecrets", "quotas"}, writes...),
			controller.May("labels and finalizers of credentials", securityv1alpha1.GroupName, []string{"workloadidentities"}, writes...),
			controller.May("bindings of credentials", corev1beta1.GroupName, []string{"secretbindings"}, controller.Reads()...),
			controller.May("bindings of credentials", securityv1alpha1.GroupName, []string{"credentialsbindings"}, controller.Reads()...),
		},
	}
}

// add adds a controller for each kind. They share one cache for each label, because that of the manager does not have these objects.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	var (
		caches  []cache.Cache
		readers []client.Reader
		errs    []error
	)
	for _, mark := range marks {
		made, err := newCache(mgr, mark.label)
		if err != nil {
			return err
		}
		caches, readers = append(caches, made), append(readers, made)
		errs = append(errs, mgr.Add(watches.InLeader(made)))
	}
	for _, kind := range kinds {
		r := &reconciler{kind: kind, marked: readers, client: deps.Client, live: deps.Live}
		to := handler.EnqueueRequestsFromMapFunc(r.referenced)
		built, err := controller.Build(mgr, "binding-reference-"+strings.ToLower(kind.Kind), r, deps.Config.CredentialsBinding.ConcurrentSyncs,
			controller.On(&corev1beta1.SecretBinding{}, to, changesReferences()),
			controller.On(&securityv1alpha1.CredentialsBinding{}, to, changesReferences()))
		if err != nil {
			return err
		}
		errs = append(errs, watchMarked(built, caches, kind))
	}
	return errors.Join(errs...)
}

// newCache returns a cache of the metadata of objects with a label. It has only their labels and finalizers.
func newCache(mgr manager.Manager, label string) (cache.Cache, error) {
	exists, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select objects with the label %s: %w", label, err)
	}
	return watches.NewCache(mgr, "objects with the label "+label, cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(*exists),
		DefaultTransform: cachetransform.Of(func(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
			reduced := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: cachetransform.Meta(object)}
			reduced.Labels, reduced.Finalizers = object.Labels, object.Finalizers
			return reduced
		}),
	})
}

// watchMarked adds the watches of the objects of a kind that have a label. It reports when they lose the label, too.
func watchMarked(built ctrl.Controller, caches []cache.Cache, kind schema.GroupVersionKind) error {
	var errs []error
	for _, marked := range caches {
		errs = append(errs, built.Watch(source.Kind[client.Object](
			marked, watches.Metadata(kind), &handler.EnqueueRequestForObject{}, predicate.ResourceVersionChangedPredicate{},
		)))
	}
	return errors.Join(errs...)
}

// referenced returns requests for the objects of the kind to which a binding refers.
func (r *reconciler) referenced(_ context.Context, binding client.Object) []reconcile.Request {
	var found []reconcile.Request
	for _, reference := range referencesOf(binding) {
		if reference.Kind == r.kind.Kind {
			found = append(found, reconcile.Request{NamespacedName: reference.NamespacedName})
		}
	}
	return found
}

// changesReferences passes new and deleted bindings, and changes of what they refer to.
func changesReferences() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(referencesOf(e.ObjectOld), referencesOf(e.ObjectNew)) || providerOf(e.ObjectOld) != providerOf(e.ObjectNew)
	}}
}

func referencesOf(object client.Object) []bindings.Reference {
	switch binding := object.(type) {
	case *corev1beta1.SecretBinding:
		return bindings.OfSecretBinding(binding)
	case *securityv1alpha1.CredentialsBinding:
		return bindings.OfCredentialsBinding(binding)
	}
	return nil
}

func providerOf(object client.Object) string {
	switch binding := object.(type) {
	case *corev1beta1.SecretBinding:
		if binding.Provider != nil {
			return binding.Provider.Type
		}
	case *securityv1alpha1.CredentialsBinding:
		return binding.Provider.Type
	}
	return ""
}

func keyOf(reference bindings.Reference) string {
	return reference.Kind + "/" + reference.String()
}
