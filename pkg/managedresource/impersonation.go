package managedresource

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// impersonate makes the pass write as the ServiceAccount of the ManagedResource, if there is one. It returns an error if
// the ServiceAccount does not exist, or if the namespace of the ManagedResource forbids it.
func (p *pass) impersonate(ctx context.Context) error {
	namespace, err := p.readNamespace(ctx)
	if err != nil {
		return err
	}
	account, err := accountOf(p.mr, namespace)
	if err != nil || account.Name == "" {
		return err
	}
	engine, err := p.Engine.As(ctx, account)
	if apierrors.IsNotFound(err) && p.operation == opCleanUp && namespace != nil && namespace.DeletionTimestamp != nil {
		// The account was deleted with its namespace, which deletes the objects of the ManagedResource, too.
		engine, err = p.Engine.AsDeleted(account)
	}
	if err != nil {
		return fmt.Errorf("spec.serviceAccountName: %w", err)
	}
	p.engine = engine
	return nil
}

// readNamespace returns the metadata of the namespace of the ManagedResource. It returns nil if Namespaces do not
// determine ServiceAccounts. It does not use a cache: the namespace must be known before anything is written.
func (p *pass) readNamespace(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	if !p.Options.NamespaceServiceAccounts {
		return nil, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := p.Direct.Get(ctx, types.NamespacedName{Name: p.mr.Namespace}, namespace); err != nil {
		return nil, fmt.Errorf("read Namespace %s, which may restrict the ServiceAccount: %w", p.mr.Namespace, err)
	}
	return namespace, nil
}

// accountOf returns the ServiceAccount of a ManagedResource. Its name is empty if the resource-manager itself writes. If
// the namespace has an account, this is the only permitted one. The namespace may be nil.
func accountOf(mr *resourcesv1alpha1.ManagedResource, namespace *metav1.PartialObjectMetadata) (types.NamespacedName, error) {
	var named types.NamespacedName
	if reference := mr.Spec.ServiceAccountName; reference != "" {
		named = types.NamespacedName{Namespace: mr.Namespace, Name: reference}
		if other, name, found := strings.Cut(reference, "/"); found {
			named = types.NamespacedName{Namespace: other, Name: name}
		}
	}
	if namespace == nil {
		return named, nil
	}
	name, restricted := namespace.Annotations[resourcesv1alpha1.AnnotationNamespaceAccount]
	only := types.NamespacedName{Namespace: mr.Namespace, Name: name}
	switch {
	case !restricted:
		return named, nil
	case name == "":
		return only, fmt.Errorf("the annotation %s of Namespace %s must not be empty: name a ServiceAccount of the namespace",
			resourcesv1alpha1.AnnotationNamespaceAccount, mr.Namespace)
	case named.Name != "" && named != only:
		return only, fmt.Errorf("spec.serviceAccountName must be %s or empty, not %s: the annotation %s of Namespace %s permits no other account",
			name, mr.Spec.ServiceAccountName, resourcesv1alpha1.AnnotationNamespaceAccount, mr.Namespace)
	}
	return only, nil
}
