package shoot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/shoot/care"
)

const (
	// watchValidity is the validity of the client certificate with which gardenlet watches a shoot cluster. It is replaced after watchRenew.
	watchValidity = 24 * time.Hour
	watchRenew    = 12 * time.Hour
)

// careOptions returns the options of the controller of conditions and constraints.
func (r *reconciler) careOptions() care.Options {
	options := care.Options{
		SeedName: r.options.SeedName, Namespace: r.options.Namespace, Required: required, Server: bundleAPIServer, Clock: r.options.Clock,
		Objects: r.extensions, Healthz: r.healthz, Access: r.watchAccess, Authorities: r.authorities,
		ObserveNodes: r.emitter.Pacer.ObserveNodes,
	}
	if controllers := r.options.Config.Controllers; controllers != nil {
		options.Config = controllers.ShootCare
	}
	return options
}

// watchAccess returns the access with which a shoot cluster is watched, or nil until its authorities exist. Client
// certificates are signed on demand and only kept in memory. While the authorities are rotated, all of them are trusted.
// Certificates are signed with the authority that all replicas trust, which is the old one until the new one has been
// distributed.
func (r *reconciler) watchAccess(ctx context.Context, shoot *corev1beta1.Shoot) (*care.Access, error) {
	namespace := shoot.Status.TechnicalID
	clients, err := r.generatedSecrets(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerName: constants.SecretNameCAClient})
	if err != nil || len(clients) == 0 {
		return nil, err
	}
	bundles, err := r.generatedSecrets(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerBundleFor: constants.SecretNameCACluster})
	if err != nil || len(bundles) == 0 {
		return nil, err
	}
	signer := clients[0]
	if distributes(shoot) {
		signer = clients[len(clients)-1]
	}
	var trusted []byte
	revision := signer.Name
	for _, bundle := range bundles {
		trusted = append(trusted, bundle.Data[secrets.KeyBundleCert]...)
		revision += " " + bundle.Name
	}
	return &care.Access{
		Revision: revision, RenewAfter: watchRenew,
		Config: func() (*rest.Config, error) { return r.watchConfig(namespace, signer.Data, trusted) },
	}, nil
}

// distributes reports whether some replicas of an API server may not trust the new authorities of a rotation yet.
func distributes(shoot *corev1beta1.Shoot) bool {
	credentials := shoot.Status.Credentials
	if credentials == nil || credentials.Rotation == nil || credentials.Rotation.CertificateAuthorities == nil {
		return false
	}
	phase := credentials.Rotation.CertificateAuthorities.Phase
	return phase == corev1beta1.RotationPreparing || phase == corev1beta1.RotationPreparingWithoutWorkersRollout
}

// watchConfig returns a connection with a new certificate. It has its own transport, because client-go caches its
// transports until the process ends.
func (r *reconciler) watchConfig(namespace string, signer map[string][]byte, trusted []byte) (*rest.Config, error) {
	credentials, err := kubeconfig.Sign(kubeconfig.Authority{Certificate: signer[secrets.KeyCACert], Key: signer[secrets.KeyCAKey]},
		kubeconfig.Subject{User: gardenletUser, Group: mastersGroup}, watchValidity, r.options.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("access shoot %s: %w", namespace, err)
	}
	pair, err := tls.X509KeyPair(credentials.Certificate, credentials.Key)
	if err != nil {
		return nil, fmt.Errorf("access shoot %s: %w", namespace, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(trusted) {
		return nil, fmt.Errorf("access shoot %s: the bundle of the authority %s has no certificate as key %s",
			namespace, constants.SecretNameCACluster, secrets.KeyBundleCert)
	}
	config := &rest.Config{
		Host: "https://" + Inputs{Namespace: namespace}.insideHost(), UserAgent: fieldManager + "/" + r.options.Version,
		Transport: utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, ServerName: kubeapiserver.Name, RootCAs: authorities, Certificates: []tls.Certificate{pair},
		}}),
	}
	if r.options.Address != nil {
		config.Host = r.options.Address(namespace)
	}
	restclient.Tune(config)
	return config, nil
}

// authorities returns the expiry times of the certificate authorities of a control plane, by the names of their Secrets.
func (r *reconciler) authorities(ctx context.Context, namespace string) (map[string]time.Time, error) {
	var list corev1.SecretList
	selector := client.MatchingLabels{constants.LabelSecretsManagerPersist: "true"}
	if err := r.caches.material.List(ctx, &list, client.InNamespace(namespace), selector, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Secrets of the control plane in namespace %s: %w", namespace, err)
	}
	valid := map[string]time.Time{}
	for _, secret := range list.Items {
		until, err := strconv.ParseInt(secret.Labels[constants.LabelSecretsManagerValidUntilTime], 10, 64)
		if err == nil && len(secret.Data[secrets.KeyCACert]) > 0 {
			valid[secret.Name] = time.Unix(until, 0)
		}
	}
	return valid, nil
}
