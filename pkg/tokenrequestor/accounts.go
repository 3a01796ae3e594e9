package tokenrequestor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watchAccounts watches the ServiceAccounts of the target cluster. When one is deleted or replaced, its tokens become
// invalid, and its source Secrets are reconciled.
func (r *Reconciler) watchAccounts(ctx context.Context, q queue) error {
	informer := metadatainformer.NewFilteredMetadataInformer(
		r.Accounts, corev1.SchemeGroupVersion.WithResource("serviceaccounts"), r.watchedNamespace(), 0, cache.Indexers{}, nil,
	).Informer()
	if err := informer.SetTransform(reduceAccount); err != nil {
		return err
	}
	handle := func(account client.Object, uid types.UID) {
		for _, secret := range r.memories.recheckAccount(client.ObjectKeyFromObject(account), uid) {
			q.Add(reconcile.Request{NamespacedName: secret})
		}
	}
	exists := func(object any) {
		if account, ok := object.(client.Object); ok {
			handle(account, account.GetUID())
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: exists, UpdateFunc: func(_, object any) { exists(object) },
		DeleteFunc: func(object any) {
			if tombstone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = tombstone.Obj
			}
			if account, ok := object.(client.Object); ok {
				handle(account, "")
			}
		},
	}); err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	return nil
}

// watchedNamespace returns the namespace of all ServiceAccounts, or an empty string if there may be several.
func (r *Reconciler) watchedNamespace() string {
	switch {
	case r.Options.AccountNamespace != "":
		return r.Options.AccountNamespace
	case len(r.Options.AccountNamespaces) == 1:
		return r.Options.AccountNamespaces[0]
	}
	return metav1.NamespaceAll
}

// reduceAccount keeps only what identifies a ServiceAccount, because clusters may have many.
func reduceAccount(object any) (any, error) {
	account, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: account.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: account.Namespace, Name: account.Name, UID: account.UID, ResourceVersion: account.ResourceVersion,
	}}, nil
}
