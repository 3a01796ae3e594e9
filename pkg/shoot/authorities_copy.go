package shoot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// labelShootUID is the label of a copy with the UID of its Shoot.
const labelShootUID = constants.AnnotationShootUID

// copyAuthorities brings the copies of certificate authorities in the garden up to date. It precedes the report of the
// status, so that they are in the garden when a Shoot has succeeded.
func (p *pass) copyAuthorities(ctx context.Context) error { return p.copyToGarden(ctx, p.in) }

// copyToGarden copies certificate authorities into the project's namespace, for users and the API server of the garden:
// the bundle of the server's authority, and the authority that signs client certificates. A new client authority is
// copied once all API servers trust it. No request is sent if neither the authorities nor the copies have changed.
func (r *reconciler) copyToGarden(ctx context.Context, in Inputs) error {
	cluster, clients := in.Secrets[constants.SecretNameCACluster], in.Secrets[constants.SecretNameCAClient]
	if in.Deleting || in.unknownSecrets() != "" || cluster.Bundle == nil || in.withdraws() {
		return nil // users trust the old authority until no server has a certificate of it
	}
	sum := sha256.Sum256([]byte(cluster.Bundle.Name + "\n" + clients.Active.Name))
	next := copied{digest: hex.EncodeToString(sum[:])}
	r.mu.Lock()
	last, known := r.copied[in.Owner.UID]
	r.mu.Unlock()
	if known && last.digest == next.digest {
		if intact, err := r.areIntact(ctx, in, last); err != nil || intact {
			return err
		}
	}
	bundle := cluster.Bundle.Data[secrets.KeyBundleCert]
	configMap := &corev1.ConfigMap{
		ObjectMeta: in.copyMeta(constants.SuffixCACluster, constants.RoleCACluster), Data: map[string]string{constants.KeyCACert: string(bundle)},
	}
	configMap.Labels[constants.LabelDiscoveryPublic] = constants.DiscoveryShootCA
	var err error
	if next.configMap, err = ensure(ctx, r.garden, configMap, &corev1.ConfigMap{}, func(present *corev1.ConfigMap) bool {
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
	if next.secret, err = ensure(ctx, r.garden, secret, &corev1beta1.InternalSecret{}, func(present *corev1beta1.InternalSecret) bool {
		same := equality.Semantic.DeepEqual(present.Data, secret.Data)
		present.Data = secret.Data
		return same
	}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copied[in.Owner.UID] = next
	return nil
}

// copied identifies the last copies of a Shoot: by a digest of their contents, and by their resource versions.
type copied struct{ digest, configMap, secret string }

// copiesOf returns the user of the copies of a Shoot. They are not read in each pass, so they have a user of their own.
func copiesOf(shoot client.ObjectKey) gardenobjects.User {
	return gardenobjects.User{Kind: "CopiesOfShoot", ObjectKey: shoot}
}

// areIntact reports whether the copies in the garden are those that were last written, according to watches of their
// metadata. A watch that is behind shows older ones.
func (r *reconciler) areIntact(ctx context.Context, in Inputs, last copied) (bool, error) {
	for _, each := range []struct {
		kind            schema.GroupVersionKind
		suffix, version string
	}{
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), constants.SuffixCACluster, last.configMap},
		{corev1beta1.SchemeGroupVersion.WithKind("InternalSecret"), constants.SuffixCAClient, last.secret},
	} {
		shown := &metav1.PartialObjectMetadata{}
		shown.SetGroupVersionKind(each.kind)
		err := r.copies.Get(ctx, copiesOf(client.ObjectKeyFromObject(in.Shoot)), client.ObjectKey{Namespace: in.Shoot.Namespace, Name: in.Shoot.Name + each.suffix}, shown)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %s %s/%s: %w", each.kind.Kind, in.Shoot.Namespace, in.Shoot.Name+each.suffix, err)
		}
		if order, err := resourceversion.CompareResourceVersion(shown.ResourceVersion, each.version); err != nil || order > 0 {
			return false, nil //nolint:nilerr // versions that cannot be compared are read again
		}
	}
	return true, nil
}

// shootOfCopy maps a copy to its Shoot, and other objects to none.
func shootOfCopy(object client.Object) []reconcile.Request {
	for _, suffix := range []string{constants.SuffixCACluster, constants.SuffixCAClient} {
		if name, found := strings.CutSuffix(object.GetName(), suffix); found {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
		}
	}
	return nil
}

// copyMeta returns the metadata of a copy. The Shoot owns it.
func (in Inputs) copyMeta(suffix, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in.Shoot.Namespace, Name: in.Shoot.Name + suffix,
		Labels: map[string]string{
			constants.LabelGardenRole: role, constants.LabelShootName: in.Shoot.Name, labelShootUID: string(in.Owner.UID),
			constants.LabelUpdateRestriction: "true",
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(in.Shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
	}
}

// ensure creates or changes an object of the garden, and returns its resource version. change corrects an existing object,
// and reports whether it was already correct.
func ensure[T client.Object](ctx context.Context, garden client.Client, wanted, present T, change func(T) bool) (string, error) {
	what := fmt.Sprintf("%T %s/%s", wanted, wanted.GetNamespace(), wanted.GetName())
	err := garden.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	if apierrors.IsNotFound(err) {
		if err := garden.Create(ctx, wanted, client.FieldOwner(fieldManager)); err != nil {
			return "", fmt.Errorf("create %s: %w", what, err)
		}
		return wanted.GetResourceVersion(), nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	copied, ok := present.DeepCopyObject().(client.Object)
	if !ok {
		return "", fmt.Errorf("copy %s: it has no metadata", what)
	}
	before := client.MergeFrom(copied)
	same := change(present)
	if same && equality.Semantic.DeepDerivative(wanted.GetLabels(), present.GetLabels()) {
		return present.GetResourceVersion(), nil
	}
	merged := maps.Clone(present.GetLabels())
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, wanted.GetLabels())
	present.SetLabels(merged)
	present.SetOwnerReferences(wanted.GetOwnerReferences())
	if err := garden.Patch(ctx, present, before, client.FieldOwner(fieldManager)); err != nil {
		return "", fmt.Errorf("change %s: %w", what, err)
	}
	return present.GetResourceVersion(), nil
}
