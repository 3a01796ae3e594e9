// Package clusteraccess gives a flow access to the cluster whose control plane it deploys: a client with a certificate of the cluster's own
// authority, and the first token of the resource-manager, which requests all others.
package clusteraccess

import (
	"cmp"
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// certificateValidity is the validity of the client certificate. It is not stored.
	certificateValidity = 10 * time.Minute
	// timeout limits each request.
	timeout = 15 * time.Second
	// tokenValidity is the validity of the first token. The resource-manager renews it after renewAfter percent of it.
	tokenValidity = 24 * time.Hour
	renewAfter    = 80
	// mastersGroup has all permissions even before RBAC objects exist.
	mastersGroup = "system:masters"
)

// Connection describes a connection with a new certificate.
type Connection struct {
	// Host is the URL of the API server, and ServerName the name in its certificate.
	Host, ServerName string
	// User in the certificate.
	User string
	// Authority signs the certificate: one that all replicas of the API server trust. Bundle verifies the server.
	Authority, Bundle secrets.Material
	// QPS limits the requests per second, and Burst those that may be sent at once. Burst defaults to QPS.
	QPS    float32
	Burst  int
	Scheme *runtime.Scheme
	Now    time.Time
}

// Connect returns a client of the cluster without a cache.
func Connect(c Connection) (client.Client, error) {
	authority := kubeconfig.Authority{Certificate: c.Authority[secrets.KeyCACert], Key: c.Authority[secrets.KeyCAKey]}
	credentials, err := kubeconfig.Sign(authority, kubeconfig.Subject{User: c.User, Group: mastersGroup}, certificateValidity, c.Now)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	config := &rest.Config{
		Host: c.Host, Timeout: timeout, QPS: c.QPS, Burst: cmp.Or(c.Burst, int(c.QPS)), TLSClientConfig: rest.TLSClientConfig{
			ServerName: c.ServerName, CAData: c.Bundle[secrets.KeyBundleCert], CertData: credentials.Certificate, KeyData: credentials.Key,
		},
	}
	restclient.Tune(config)
	return client.New(config, client.Options{Scheme: c.Scheme})
}

// RequestToken creates the ServiceAccount and the rights of a resource-manager in the cluster, and requests a token for it.
func RequestToken(ctx context.Context, cluster client.Client, rights []client.Object) (*authenticationv1.TokenRequest, error) {
	var account *corev1.ServiceAccount
	for _, object := range rights {
		if found, isAccount := object.(*corev1.ServiceAccount); isAccount {
			account = found
		}
		if err := cluster.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create the RBAC objects of the resource-manager: %w", err)
		}
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenValidity.Seconds()))},
	}
	if err := cluster.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token for the resource-manager: %w", err)
	}
	return request, nil
}

// StoreToken writes a token into the access Secret of a resource-manager, with the time at which the resource-manager renews it.
func StoreToken(ctx context.Context, writer client.Client, secret *corev1.Secret, request *authenticationv1.TokenRequest, manager string, now time.Time) error {
	validity := request.Status.ExpirationTimestamp.Sub(now)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.AnnotationTokenRenewTimestamp,
		now.Add(validity*renewAfter/100).UTC().Format(time.RFC3339))
	secret.Data = map[string][]byte{resourcesv1alpha1.DataKeyToken: []byte(request.Status.Token)}
	err := writer.Create(ctx, secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		present := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
		err = writer.Patch(ctx, secret, client.StrategicMergeFrom(present), client.FieldOwner(manager))
	}
	if err != nil {
		return fmt.Errorf("write the token of the resource-manager into Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
