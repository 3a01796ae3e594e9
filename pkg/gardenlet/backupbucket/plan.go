// Package backupbucket contains gardenlet's controller of BackupBuckets, which makes extensions create the buckets.
package backupbucket

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
)

// FlowName is the value of flow.LabelFlow on objects that the controller emits.
const FlowName = "backupbucket"

// again is the interval between successful operations of an extension for the same bucket.
const again = 12 * time.Hour

// inputs are the inputs of the plan.
type inputs struct {
	owner     flow.Owner
	namespace string
	bucket    *corev1beta1.BackupBucket
	// credentials is a digest of the data of the Secret in the seed.
	credentials string
	// asked is the last request to the extension. live is the extension object, or nil if it does not exist.
	asked backup.Asked
	live  *backup.Extension
	now   time.Time
}

// SecretName returns the name of the Secret with the credentials in the seed.
func SecretName(bucket string) string { return "bucket-" + bucket }

// keyOf returns the key of the bundle of a bucket.
func keyOf(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "backupbucket-" + name}
}

// digest returns a digest of the inputs of the extension's operation.
func (in inputs) digest() (string, error) {
	text, err := json.Marshal(in.object().Spec)
	if err != nil {
		return "", fmt.Errorf("encode the BackupBucket: %w", err)
	}
	return backup.DigestOf(nil, text, []byte(in.credentials)), nil
}

// object returns the extension object, without a requested operation.
func (in inputs) object() *extensionsv1alpha1.BackupBucket {
	spec := in.bucket.Spec
	return &extensionsv1alpha1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{
			Name: in.bucket.Name, Annotations: map[string]string{constants.AnnotationGeneratedSecretNamespace: in.namespace},
		},
		Spec: extensionsv1alpha1.BackupBucketSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: spec.Provider.Type, ProviderConfig: spec.ProviderConfig},
			Region:      spec.Provider.Region, SecretRef: corev1.SecretReference{Namespace: in.namespace, Name: SecretName(in.bucket.Name)},
		},
	}
}

// plan returns the plan for a bucket, and the request to the extension. It is a pure function.
func (in inputs) plan(bundle func(flow.Key, *extensionsv1alpha1.BackupBucket, backup.Asked) flow.Bundle) (flow.Plan, backup.Asked, error) {
	key := keyOf(in.namespace, in.bucket.Name)
	if in.bucket.DeletionTimestamp != nil {
		return flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: key, Confirm: true}}}, in.asked, nil
	}
	digest, err := in.digest()
	if err != nil {
		return flow.Plan{}, in.asked, err
	}
	asked, next := backup.Ask(in.asked, digest, in.live, again, in.now)
	return flow.Plan{Bundles: []flow.Bundle{bundle(key, in.object(), asked)}, Next: next}, asked, nil
}
