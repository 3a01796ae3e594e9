package shoot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// labelShootUID is the label of a copy with the UID of its Shoot.
const labelShootUID = constants.AnnotationShootUID

// copyToGarden copies certificate authorities into the project's namespace, for users and the API server of the garden:
// the bundle of the server's authority, and the authority that signs client certificates. A new client authority is
// copied once all API servers trust it. The digest of the last copy is remembered, so that no request is sent if nothing
// has changed.
func (r *reconciler) copyToGarden(ctx context.Context, in Inputs) error {
	cluster, clients := in.Secrets[constants.SecretNameCACluster], in.Secrets[constants.SecretNameCAClient]
	if in.Deleting || in.unknownSecrets() != "" || cluster.Bundle == nil || in.withdraws() {
		return nil // users trust the old authority until no server has a certificate of it
	}
	sum := sha256.Sum256([]byte(cluster.Bundle.Name + "\n" + clients.Active.Name))
	digest := hex.EncodeToString(sum[:])
	r.mu.Lock()
	known := r.copied[in.Owner.UID] == digest
	r.mu.Unlock()
	if known {
		return nil
	}
	bundle := cluster.Bundle.Data[secrets.KeyBundleCert]
	configMap := &corev1.ConfigMap{
		ObjectMeta: in.copyMeta(constants.SuffixCACluster, constants.RoleCACluster), Data: map[string]string{constants.KeyCACert: string(bundle)},
	}
	if err := ensure(ctx, r.garden, configMap, &corev1.ConfigMap{}, func(present *corev1.ConfigMap) bool {
		same := maps.Equal(present.Data, configMap.Data)
		present.Data = configMap.Data
		return same
	}); err != nil {
		return err
	}
	secret := &corev1beta1.InternalSecret{
		ObjectMeta: in.copyMeta(constants.SuffixCAClient, constants.RoleCAClient), Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			constants.KeyCACert: clients.Active.Data[secrets.KeyCACert], constants.KeyCAKey: clients.Active.Data[secrets.KeyCAKey],
		},
	}
	if err := ensure(ctx, r.garden, secret, &corev1beta1.InternalSecret{}, func(present *corev1beta1.InternalSecret) bool {
		same := equality.Semantic.DeepEqual(present.Data, secret.Data)
		present.Data = secret.Data
		return same
	}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copied[in.Owner.UID] = digest
	return nil
}

// copyMeta returns the metadata of a copy. The Shoot owns it.
func (in Inputs) copyMeta(suffix, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in.Shoot.Namespace, Name: in.Shoot.Name + suffix,
		Labels: map[string]string{
			constants.LabelGardenRole: role, constants.LabelShootName: in.Shoot.Name, labelShootUID: string(in.Owner.UID),
			constants.LabelUpdateRestriction: "true", constants.LabelDiscoveryPublic: role,
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(in.Shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
	}
}

// ensure creates or changes an object of the garden. change corrects an existing object, and reports whether it was already correct.
func ensure[T client.Object](ctx context.Context, garden client.Client, wanted, present T, change func(T) bool) error {
	what := fmt.Sprintf("%T %s/%s", wanted, wanted.GetNamespace(), wanted.GetName())
	err := garden.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	if apierrors.IsNotFound(err) {
		if err := garden.Create(ctx, wanted, client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("create %s: %w", what, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	copied, ok := present.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %s: it has no metadata", what)
	}
	before := client.MergeFrom(copied)
	same := change(present)
	if same && equality.Semantic.DeepDerivative(wanted.GetLabels(), present.GetLabels()) {
		return nil
	}
	labels := maps.Clone(present.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, wanted.GetLabels())
	present.SetLabels(labels)
	present.SetOwnerReferences(wanted.GetOwnerReferences())
	if err := garden.Patch(ctx, present, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("change %s: %w", what, err)
	}
	return nil
}
