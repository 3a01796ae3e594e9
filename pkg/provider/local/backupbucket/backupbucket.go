// Package backupbucket manages buckets for backups.
package backupbucket

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local/store"
)

// FlowName distinguishes the ManagedResources of BackupBuckets from others of the extension.
const FlowName = "backupbucket"

// prefixGenerated is the prefix of the names of generated Secrets.
const prefixGenerated = "generated-bucket-"

// Actuator creates buckets, and deploys a generated Secret for each.
type Actuator struct {
	*bundles.Actuator[*extensionsv1alpha1.BackupBucket]

	Stores store.Stores
}

// New returns the actuator.
func New(deployer *bundles.Deployer, stores store.Stores) *Actuator {
	return &Actuator{Stores: stores, Actuator: bundles.NewActuator(deployer, FlowName,
		func(_ context.Context, object *extensionsv1alpha1.BackupBucket, _ *extension.Cluster) (flow.Plan, error) {
			return Plan(object), nil
		})}
}

// Plan returns the bundle of a BackupBucket: the Secret to which its status refers. It is empty, because users of the
// bucket only need the bucket's credentials.
func Plan(object *extensionsv1alpha1.BackupBucket) flow.Plan {
	namespace := generatedNamespace(object)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prefixGenerated + object.Name}, Type: corev1.SecretTypeOpaque,
	}
	bundle := bundles.Seed(constants.GardenNamespace, prefixGenerated+object.Name)
	bundle.Objects = []client.Object{secret}
	object.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}
}

// generatedNamespace returns the namespace in which gardenlet expects generated Secrets.
func generatedNamespace(object *extensionsv1alpha1.BackupBucket) string {
	if namespace := object.Annotations[constants.AnnotationGeneratedSecretNamespace]; namespace != "" {
		return namespace
	}
	return constants.GardenNamespace
}

// Reconcile creates the bucket and deploys the Secret.
func (a *Actuator) Reconcile(
	ctx context.Context, object *extensionsv1alpha1.BackupBucket, cluster *extension.Cluster,
) (extension.Result, error) {
	buckets, _, err := a.Stores.Of(ctx, object.Spec.SecretRef, object.Spec.Region)
	if err == nil {
		err = buckets.Create(ctx, object.Name)
	}
	if err != nil {
		return extension.Result{}, err
	}
	return a.Actuator.Reconcile(ctx, object, cluster)
}

// Restore creates the bucket if it does not exist.
func (a *Actuator) Restore(
	ctx context.Context, object *extensionsv1alpha1.BackupBucket, cluster *extension.Cluster,
) (extension.Result, error) {
	return a.Reconcile(ctx, object, cluster)
}

// Delete deletes the bucket with its contents, and the Secret.
func (a *Actuator) Delete(
	ctx context.Context, object *extensionsv1alpha1.BackupBucket, cluster *extension.Cluster,
) (extension.Result, error) {
	buckets, _, err := a.Stores.Of(ctx, object.Spec.SecretRef, object.Spec.Region)
	if err == nil {
		err = buckets.Delete(ctx, object.Name)
	}
	if err != nil {
		return extension.Result{}, err
	}
	return a.Actuator.Delete(ctx, object, cluster)
}
