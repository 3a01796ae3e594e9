// Package backupbucket has the controller of gardenlet that has the buckets for backups made by extensions.
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

// FlowName is the value of flow.LabelFlow on what the controller emits.
const FlowName = "backupbucket"

// again is how long after its last success an extension is asked to look at its bucket.
const again = 12 * time.Hour

// inputs are all that the plan is made from.
type inputs struct {
	owner     flow.Owner
	namespace string
	bucket    *corev1beta1.BackupBucket
	// credentials is a digest of the data in the Secret in the seed.
	credentials string
	// asked is what was asked of the extension last, and live the extension's object; nil if it does not exist.
	asked backup.Asked
	live  *backup.Extension
	now   time.Time
}

// SecretName returns the name of the Secret with the credentials in the seed.
func SecretName(bucket string) string { return "bucket-" + bucket }

func keyOf(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "backupbucket-" + name}
}

// digest is that of what the extension's operation is for.
func (in inputs) digest() (string, error) {
	text, err := json.Marshal(in.object().Spec)
	if err != nil {
		return "", fmt.Errorf("encode the BackupBucket: %w", err)
	}
	return backup.DigestOf(nil, text, []byte(in.credentials)), nil
}

// object returns the extension's object, without an operation.
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

// plan returns the plan for a bucket, what is asked of the extension, and nothing else. It is pure.
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
