package shoot

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// managedIssuer returns the issuer of tokens that the garden publishes, empty if the Shoot has none or the host is not known.
func (in Inputs) managedIssuer() string {
	if !issuer.IsManaged(in.Shoot.Annotations) || in.IssuerHost == "" {
		return ""
	}
	return issuer.URL(in.IssuerHost, in.Project, in.Owner.UID)
}

// issuerSecret returns the metadata of the Secret of the garden with the documents of the managed issuer. It has no owner, because owners are in
// the same namespace.
func (in Inputs) issuerSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.SystemShootIssuerNamespace, Name: issuer.SecretName(in.Project, in.Owner.UID),
		Labels: issuer.Labels(in.Project, in.Shoot.Namespace, in.Shoot.Name),
	}}
}

// issuerDocuments returns the Secret of the garden with the documents of the managed issuer, nil if they are not to be written now. They follow from
// the keys that the API server accepts, and not from its answer: so they have a new key before a token is signed with it, and do not depend on a
// server that may be of another version or not reachable.
func (in Inputs) issuerDocuments() (*corev1.Secret, error) {
	if in.managedIssuer() == "" || in.Deleting || in.hibernated() || in.Phase == phaseMigrate || in.unknownSecrets() != "" {
		return nil, nil
	}
	item := in.Secrets[constants.SecretNameServiceAccountKey]
	keys := [][]byte{item.Current.Data[secrets.KeyRSA]}
	if item.Old != nil {
		keys = append(keys, item.Old.Data[secrets.KeyRSA])
	}
	documents, err := issuer.NewDocuments(in.managedIssuer(), keys...)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s/%s: %w", in.Namespace, item.Current.Name, err)
	}
	secret := in.issuerSecret()
	secret.Type = corev1.SecretTypeOpaque
	secret.Data = map[string][]byte{issuer.KeyConfiguration: []byte(documents.Configuration), issuer.KeyKeys: []byte(documents.Keys)}
	return secret, nil
}

// publishIssuer writes the documents of the managed issuer into the garden. It precedes the emission, so that they have a new key before the API
// server signs with it. No request is sent if they are there, according to a watch.
func (p *pass) publishIssuer(ctx context.Context) error { return p.publishTo(ctx, p.in) }

func (r *reconciler) publishTo(ctx context.Context, in Inputs) error {
	wanted, err := in.issuerDocuments()
	if err != nil || wanted == nil {
		return err
	}
	key, shown := client.ObjectKeyFromObject(wanted), &corev1.Secret{}
	err = r.copies.Get(ctx, copiesOf(client.ObjectKeyFromObject(in.Shoot)), key, shown)
	switch {
	case apierrors.IsNotFound(err):
		err = r.garden.Create(ctx, wanted, client.FieldOwner(fieldManager))
		if apierrors.IsAlreadyExists(err) { // the watch shows it soon, and triggers the next pass
			return nil
		}
	case err == nil && labels.SelectorFromSet(wanted.Labels).Matches(labels.Set(shown.Labels)) && equality.Semantic.DeepEqual(shown.Data, wanted.Data):
		return nil
	case err == nil:
		changed := shown.DeepCopy()
		changed.Data = wanted.Data
		if changed.Labels == nil {
			changed.Labels = map[string]string{}
		}
		maps.Copy(changed.Labels, wanted.Labels)
		err = r.garden.Patch(ctx, changed, client.MergeFrom(shown), client.FieldOwner(fieldManager))
	}
	if err != nil {
		return fmt.Errorf("publish the documents of the managed issuer in Secret %s of the garden: %w", key, err)
	}
	return nil
}

// withdrawIssuer deletes the documents of the managed issuer of a deleted Shoot.
func (r *reconciler) withdrawIssuer(ctx context.Context, in Inputs) error {
	if !issuer.IsManaged(in.Shoot.Annotations) || in.Project == "" {
		return nil
	}
	secret := in.issuerSecret()
	if err := client.IgnoreNotFound(r.garden.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete the documents of the managed issuer in Secret %s of the garden: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// shootOfDocuments maps the documents of a managed issuer to their Shoot, and other objects to none.
func shootOfDocuments(object client.Object) []reconcile.Request {
	found := object.GetLabels()
	name := types.NamespacedName{Namespace: found[constants.LabelShootNamespace], Name: found[constants.LabelShootName]}
	if object.GetNamespace() != constants.SystemShootIssuerNamespace || name.Namespace == "" || name.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}
