// Package backupentry gives control planes access to their part of a bucket, and deletes their backups.
package backupentry

import (
	"context"
	"maps"
	"strings"

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

// FlowName distinguishes the ManagedResources of BackupEntries from others of the extension.
const FlowName = "backupentry"

const (
	// secretName is the name of the Secret with access to the backups in the namespace of the Shoot.
	secretName          = constants.SecretNameETCDBackup
	annotationCreatedBy = "backup.gardener.cloud/created-by"
	keyBucketName       = "bucketName"
	keyHostPath         = "hostPath"
	prefixSource        = "source-"
	bundlePrefix        = "etcd-backup-"
)

// Actuator deploys the Secrets with access to backups.
type Actuator struct {
	*bundles.Actuator[*extensionsv1alpha1.BackupEntry]

	Stores store.Stores
}

// New returns the actuator. hostPath is the path of the directory with the buckets on nodes, or empty.
func New(deployer *bundles.Deployer, stores store.Stores, hostPath string) *Actuator {
	plan := func(ctx context.Context, object *extensionsv1alpha1.BackupEntry, _ *extension.Cluster) (flow.Plan, error) {
		_, credentials, err := stores.Of(ctx, object.Spec.SecretRef, object.Spec.Region)
		if err != nil {
			return flow.Plan{}, err
		}
		return Plan(object, credentials, hostPath), nil
	}
	return &Actuator{Stores: stores, Actuator: bundles.NewActuator(deployer, FlowName, plan)}
}

// Plan returns the bundle of a BackupEntry: the Secret with access to its backups.
func Plan(object *extensionsv1alpha1.BackupEntry, credentials map[string][]byte, hostPath string) flow.Plan {
	namespace := extension.TechnicalID(object.Name)
	data := maps.Clone(credentials)
	if data == nil {
		data = map[string][]byte{}
	}
	data[keyBucketName] = []byte(object.Spec.BucketName)
	if hostPath != "" && !store.InS3(credentials) {
		data[keyHostPath] = []byte(hostPath)
	}
	name := secretName
	if strings.HasPrefix(object.Name, prefixSource) {
		name = prefixSource + secretName
	}
	bundle := bundles.Seed(namespace, bundlePrefix+object.Name)
	bundle.Objects = []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{annotationCreatedBy: object.Name}},
		Type:       corev1.SecretTypeOpaque, Data: data,
	}}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}
}

// Delete deletes the backups of the entry and its Secret.
func (a *Actuator) Delete(
	ctx context.Context, object *extensionsv1alpha1.BackupEntry, cluster *extension.Cluster,
) (extension.Result, error) {
	buckets, _, err := a.Stores.Of(ctx, object.Spec.SecretRef, object.Spec.Region)
	if err == nil {
		err = buckets.DeleteEntry(ctx, object.Spec.BucketName, strings.TrimPrefix(object.Name, prefixSource))
	}
	if err != nil {
		return extension.Result{}, err
	}
	return a.Actuator.Delete(ctx, object, cluster)
}
