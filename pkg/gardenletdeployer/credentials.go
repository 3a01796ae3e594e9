package gardenletdeployer

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// accountValidity is the validity of the token of a ServiceAccount with which a gardenlet requests its certificate.
const accountValidity = 10 * time.Minute

// bootstrapperRole is the ClusterRole with the rights to request a certificate.
const bootstrapperRole = "gardener.cloud:system:seed-bootstrapper"

// Issuer issues the credentials in the garden with which a gardenlet requests its first certificate.
type Issuer struct {
	// Garden reads from the API server of the garden, and writes to it.
	Garden client.Client
	// Cluster is the address and the authority of the garden.
	Cluster clientcmdapi.Cluster
	// FieldManager of the writes.
	FieldManager client.FieldOwner
	Random       io.Reader
	Clock        clock.PassiveClock
}

// Issue returns a kubeconfig for the first certificate, and when it expires. A bootstrap token that is still valid is used again.
func (i Issuer) Issue(ctx context.Context, kind Kind, namespace, name string, how v1alpha1.Bootstrap) ([]byte, time.Time, error) {
	issue := i.token
	if how == v1alpha1.BootstrapServiceAccount {
		issue = i.account
	}
	found, expires, err := issue(ctx, kind, namespace, name)
	if err != nil {
		return nil, time.Time{}, err
	}
	content, err := kubeconfig(i.Cluster, found)
	return content, expires, err
}

// token returns the bootstrap token for an object.
func (i Issuer) token(ctx context.Context, kind Kind, namespace, name string) (string, time.Time, error) {
	now := i.Clock.Now()
	secret, err := newToken(kind, namespace, name, i.Random, now)
	if err != nil {
		return "", time.Time{}, err
	}
	present := &corev1.Secret{}
	err = i.Garden.Get(ctx, client.ObjectKeyFromObject(secret), present)
	switch {
	case apierrors.IsNotFound(err):
		err = i.Garden.Create(ctx, secret, i.FieldManager)
	case err == nil:
		if found, expires := token(present); found != "" && expires.Sub(now) > tokenMargin {
			return found, expires, nil
		}
		secret.ResourceVersion = present.ResourceVersion
		err = i.Garden.Update(ctx, secret, i.FieldManager)
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("write the bootstrap token in Secret %s/%s of the garden: %w", secret.Namespace, secret.Name, err)
	}
	found, expires := token(secret)
	return found, expires, nil
}

// account returns a token of a ServiceAccount that may only request certificates.
func (i Issuer) account(ctx context.Context, _ Kind, namespace, name string) (string, time.Time, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: constants.PrefixBootstrapServiceAccount + name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: graph.BootstrapBinding(namespace, account.Name)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstrapperRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	for _, object := range []client.Object{account, binding} {
		if err := i.Garden.Create(ctx, object, i.FieldManager); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", time.Time{}, fmt.Errorf("create the ServiceAccount of the gardenlet of %s/%s in the garden: %w", namespace, name, err)
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(accountValidity.Seconds()))}}
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := i.Garden.SubResource("token").Create(ctx, account, request); err != nil {
		return "", time.Time{}, fmt.Errorf("request a token of ServiceAccount %s/%s of the garden: %w", account.Namespace, account.Name, err)
	}
	return request.Status.Token, request.Status.ExpirationTimestamp.Time, nil
}

// Revoke deletes the bootstrap token of an object, or the ServiceAccount, if they exist.
func (i Issuer) Revoke(ctx context.Context, namespace, name string, how v1alpha1.Bootstrap) error {
	objects := []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: graph.TokenSecret(namespace, name)}}}
	if how == v1alpha1.BootstrapServiceAccount {
		account := constants.PrefixBootstrapServiceAccount + name
		objects = []client.Object{
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: graph.BootstrapBinding(namespace, account)}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}},
		}
	}
	for _, object := range objects {
		if err := client.IgnoreNotFound(i.Garden.Delete(ctx, object)); err != nil {
			return fmt.Errorf("delete the bootstrap credentials of %s/%s in the garden: %w", namespace, name, err)
		}
	}
	return nil
}

// Stored is the kubeconfig of a gardenlet in its cluster.
type Stored struct {
	// Fingerprint identifies its content. It is empty without a kubeconfig.
	Fingerprint string
	// Expires is when its certificate expires; zero if it has none.
	Expires time.Time
}

// StoredIn reads the kubeconfig in a Secret, which may be nil.
func StoredIn(secret *corev1.Secret) Stored {
	if secret == nil || len(secret.Data[KeyKubeconfig]) == 0 {
		return Stored{}
	}
	sum := sha256.Sum256(secret.Data[KeyKubeconfig])
	stored := Stored{Fingerprint: hex.EncodeToString(sum[:8])}
	config, err := clientcmd.Load(secret.Data[KeyKubeconfig])
	if err != nil {
		return stored
	}
	for _, user := range config.AuthInfos {
		block, _ := pem.Decode(user.ClientCertificateData)
		if block == nil {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			stored.Expires = certificate.NotAfter
		}
	}
	return stored
}
