// Package backupbucket makes buckets for backups.
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

// prefixGenerated begins the names of generated Secrets.
const prefixGenerated = "generated-bucket-"

// Actuator makes buckets, and deploys the Secret that it generates for each.
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

// Plan returns what has to exist for a BackupBucket: the Secret that it refers to in its status. The credentials of the bucket are all
// that is needed.
func Plan(object *extensionsv1alpha1.BackupBucket) flow.Plan {
	namespace := generatedNamespace(object)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prefixGenerated + object.Name}, Type: corev1.SecretTypeOpaque}
	bundle := bundles.Seed(constants.GardenNamespace, prefixGenerated+object.Name)
	bundle.Objects = []client.Object{secret}
	object.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}
}

// generatedNamespace is where gardenlet looks for what extensions generate.
func generatedNamespace(object *extensionsv1alpha1.BackupBucket) string {
	if namespace := object.Annotations[constants.AnnotationGeneratedSecretNamespace]; namespace != "" {
		return namespace
	}
	return constants.GardenNamespace
}

// Reconcile makes the bucket.
func (a *Actuator) Reconcile(ctx context.Context, object *extensionsv1alpha1.BackupBucket, cluster *extension.Cluster) (extension.Result, error) {
	buckets, _, err := a.Stores.Of(ctx, object.Spec.SecretRef)
	if err == nil {
		err = buckets.Create(ctx, object.Name)
	}
	if err != nil {
		return extension.Result{}, err
	}
	return a.Actuator.Reconcile(ctx, object, cluster)
}

// Restore makes the bucket, if it does not exist.
func (a *Actuator) Restore(ctx context.Context, object *extensionsv1alpha1.BackupBucket, cluster *extension.Cluster) (extension.Result, error) {
	return a.Reconcile(ctx, object, cluster)
}

// Delete deletes the bucket with all that is in it.
func (a *Actuator) Delete(ctx context.Context, object *extensionsv1alpha1.BackupBucket, cluster *extension.Cluster) (extension.Result, error) {
	buckets, _, err := a.Stores.Of(ctx, object.Spec.SecretRef)
	if err == nil {
		err = buckets.Delete(ctx, object.Name)
	}
	if err != nil {
		return extension.Result{}, err
	}
	return a.Actuator.Delete(ctx, object, cluster)
}
