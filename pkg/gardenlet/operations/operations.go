// Package operations carries out what the operation annotation of a Seed asks a gardenlet for: new credentials in the seed. Each operation is
// carried out once; the annotation is removed afterwards.
package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/workloadidentity"
)

const (
	// ControllerName names the controller in logs and metrics.
	ControllerName = "seed-operations"
	fieldManager   = "gardenlet"
)

// Reconciler carries out the operations of one Seed.
type Reconciler struct {
	SeedName string
	// KubeconfigSecret has the kubeconfig for the garden; nil if a file has it.
	KubeconfigSecret *corev1.SecretReference
	// Seed reads the metadata of Secrets from a cache, and writes it.
	Seed client.Client
	// Garden reads the Seed from its cache, and writes it.
	Garden client.Client
	Cache  cache.Cache
}

// AddToManager registers the controller.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	asks := predicate.NewTypedPredicateFuncs(func(seed *gardencorev1beta1.Seed) bool {
		return seed.Name == r.SeedName && r.operation(seed) != nil
	})
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Kind(r.Cache, &gardencorev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*gardencorev1beta1.Seed]{}, asks)).
		Complete(r)
}

// operation returns what a Seed asks for; nil if that is nothing, or something for others.
func (r *Reconciler) operation(seed *gardencorev1beta1.Seed) func(context.Context) error {
	switch seed.Annotations[constants.AnnotationGardenerOperation] {
	case constants.OperationRenewGardenAccessSecrets:
		return r.renewGardenAccess
	case constants.OperationRenewWorkloadIdentityTokens:
		return r.renewWorkloadIdentities
	case constants.OperationRenewKubeconfig:
		return r.renewKubeconfig
	}
	return nil
}

// Reconcile carries out an operation and removes the annotation. If the process is ended in between, the operation is carried out again, which
// does no harm.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := r.Garden.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	run := r.operation(seed)
	if run == nil {
		return reconcile.Result{}, nil
	}
	operation := seed.Annotations[constants.AnnotationGardenerOperation]
	if err := run(ctx); err != nil {
		return reconcile.Result{}, fmt.Errorf("operation %s of Seed %s: %w", operation, seed.Name, err)
	}
	before := seed.DeepCopy()
	delete(seed.Annotations, constants.AnnotationGardenerOperation)
	// Only from the Seed that was read: another operation may have come.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Garden.Patch(ctx, seed, patch, client.FieldOwner(fieldManager)); err != nil {
		return reconcile.Result{}, fmt.Errorf("remove operation %s of Seed %s, which was carried out: %w", operation, seed.Name, err)
	}
	log.FromContext(ctx).Info("Carried out an operation of the Seed", "operation", operation)
	return reconcile.Result{}, nil
}

func (r *Reconciler) renewGardenAccess(ctx context.Context) error {
	return r.forgetTimestamps(ctx, resourcesv1alpha1.AnnotationTokenRenewTimestamp, client.MatchingLabels{
		resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassGarden,
	})
}

func (r *Reconciler) renewWorkloadIdentities(ctx context.Context) error {
	return r.forgetTimestamps(ctx, constants.AnnotationWorkloadIdentityTokenRenewTimestamp, client.MatchingLabels{
		constants.LabelSecurityPurpose: workloadidentity.Purpose,
	})
}

// forgetTimestamps removes from Secrets the annotation with the time of the next renewal, so that it is now.
func (r *Reconciler) forgetTimestamps(ctx context.Context, annotation string, selected client.MatchingLabels) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.Seed.List(ctx, secrets, selected); err != nil {
		return fmt.Errorf("list the Secrets whose tokens are renewed: %w", err)
	}
	var errs []error
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if _, found := secret.Annotations[annotation]; !found || secret.DeletionTimestamp != nil {
			continue
		}
		errs = append(errs, r.annotate(ctx, client.ObjectKeyFromObject(secret), annotation, nil))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) renewKubeconfig(ctx context.Context) error {
	if r.KubeconfigSecret == nil {
		log.FromContext(ctx).Info("The kubeconfig for the garden is in a file: who made it renews it")
		return nil
	}
	operation := constants.OperationRenew
	key := client.ObjectKey{Namespace: r.KubeconfigSecret.Namespace, Name: r.KubeconfigSecret.Name}
	return r.annotate(ctx, key, constants.AnnotationGardenerOperation, &operation)
}

// annotate sets or removes an annotation of a Secret. One that is gone needs none.
func (r *Reconciler) annotate(ctx context.Context, key client.ObjectKey, annotation string, value *string) error {
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{annotation: value}}})
	if err != nil {
		return err
	}
	err = r.Seed.Patch(ctx, secret, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate Secret %s of the seed: %w", key, err)
	}
	return nil
}
