package shoot

import (
	"context"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
)

// alwaysEncrypted is the resource that is encrypted in every Shoot. The status does not contain it.
const alwaysEncrypted = "secrets"

// encryptionProvider returns the declared encryption provider, or the default.
func (in Inputs) encryptionProvider() corev1beta1.EncryptionProviderType {
	if config := in.server().EncryptionConfig; config != nil {
		return ptr.Deref(config.Provider.Type, corev1beta1.EncryptionProviderTypeAESCBC)
	}
	return corev1beta1.EncryptionProviderTypeAESCBC
}

// encryptedResources returns the resources that must be encrypted in etcd: Secrets first, then the others, sorted.
func (in Inputs) encryptedResources() []string {
	var resources []string
	if config := in.server().EncryptionConfig; config != nil {
		resources = config.Resources
	}
	return append([]string{alwaysEncrypted}, rotation.Canonical(resources)...)
}

// encryptedBefore returns the resources that were encrypted when the last operation succeeded.
func (in Inputs) encryptedBefore() []string {
	var resources []string
	if credentials := in.Shoot.Status.Credentials; credentials != nil && credentials.EncryptionAtRest != nil {
		resources = credentials.EncryptionAtRest.Resources
	}
	return append([]string{alwaysEncrypted}, rotation.Canonical(resources)...)
}

// isReported reports whether the status contains the encrypted resources. Until then, the cluster has no users.
func (in Inputs) isReported() bool {
	return in.Shoot.Status.Credentials != nil && in.Shoot.Status.Credentials.EncryptionAtRest != nil
}

// encryption returns what the API server encrypts.
func (in Inputs) encryption() rotation.Encryption {
	encryption := rotation.Encryption{
		Wanted: in.encryptedResources(), Before: in.encryptedBefore(), Reported: in.isReported(), Done: in.done,
		Rotated: cycles(in.rotation()).Prepares(rotation.EncryptionKey),
	}
	if in.unknownSecrets() == "" {
		encryption.Key = in.Secrets[constants.SecretNameETCDEncryptionKey].Current.Name
	}
	return encryption
}

// encryptionChanges reports whether the encrypted resources differ from the declared ones.
func (in Inputs) encryptionChanges() bool { return len(in.encryption().Changing()) > 0 }

// rewriteObjects makes the API server write a page of the objects of a resource into etcd again.
func (r *reconciler) rewriteObjects(ctx context.Context, in Inputs, task flow.Task) (flow.Outcome, error) {
	if in.hibernated() {
		return flow.Outcome{Progress: "objects are rewritten after the shoot has woken up"}, nil
	}
	shoot, err := r.connect(in)
	if err != nil {
		return flow.Outcome{}, err
	}
	return r.rewrites.Rewrite(ctx, shoot, "shoot "+in.Namespace, in.Owner.UID, task)
}
