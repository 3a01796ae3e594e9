package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// Garden is a gardenlet's access to its garden.
type Garden struct {
	// SeedName is the name of the Seed.
	SeedName string
	// Config defines where credentials are stored.
	Config *v1alpha1.GardenClientConnection
	// Seed reads and writes Secrets of the seed, without a cache.
	Seed  client.Client
	Clock clock.Clock
}

// Establish returns a connection to the garden. It uses the kubeconfig Secret if it contains a kubeconfig, otherwise a
// certificate that it requests with the bootstrap kubeconfig, otherwise the kubeconfig file. Afterwards it deletes the
// bootstrap credentials and adopts the CA of the garden.
func (g Garden) Establish(ctx context.Context) (*Connection, error) {
	config, err := g.find(ctx)
	if err != nil {
		return nil, err
	}
	connection, err := NewConnection(settingsOf(g.Config).apply(config))
	if err != nil {
		return nil, err
	}
	if g.Config.KubeconfigSecret == nil {
		return connection, nil
	}
	if err := g.endBootstrap(ctx, connection); err != nil {
		return nil, err
	}
	return connection, g.refreshCA(ctx, connection)
}

// Present returns a connection with the credentials that exist, and changes nothing. It returns nil if Establish would have to request the first
// ones. The error is ErrNoAccess if there is nothing to request them with.
func (g Garden) Present(ctx context.Context) (*Connection, error) {
	config, _, err := g.present(ctx)
	if err != nil || config == nil {
		return nil, err
	}
	return NewConnection(settingsOf(g.Config).apply(config))
}

// find returns the credentials that Establish uses.
func (g Garden) find(ctx context.Context) (*rest.Config, error) {
	config, own, err := g.present(ctx)
	if err != nil || config != nil {
		return config, err
	}
	if config, err = g.bootstrap(ctx, own); err == nil && config == nil {
		err = errors.New("the bootstrap kubeconfig was deleted before it was used")
	}
	return config, err
}

// present returns the credentials that exist, and the kubeconfig Secret. It returns no credentials if the bootstrap kubeconfig has to be used.
func (g Garden) present(ctx context.Context) (config *rest.Config, own stored, err error) {
	if g.Config.KubeconfigSecret != nil {
		if own, err = readSecret(ctx, g.Seed, g.Config.KubeconfigSecret); err != nil || own.config != nil {
			return own.config, own, err
		}
		if bootstrap, err := g.bootstrapSecret(ctx); err != nil || bootstrap.config != nil {
			return nil, own, err
		}
	}
	if g.Config.Kubeconfig == "" {
		return nil, own, fmt.Errorf("%w: gardenClientConnection of the configuration has no kubeconfig, and its Secrets hold none", ErrNoAccess)
	}
	config, err = kubeconfig.Read(g.Config.Kubeconfig)
	return config, own, err
}

// bootstrapSecret reads the Secret with the bootstrap kubeconfig, if the configuration names one.
func (g Garden) bootstrapSecret(ctx context.Context) (stored, error) {
	if g.Config.BootstrapKubeconfig == nil {
		return stored{}, nil
	}
	return readSecret(ctx, g.Seed, g.Config.BootstrapKubeconfig)
}

// bootstrap requests a certificate with the bootstrap kubeconfig and stores it. It returns nil without a bootstrap kubeconfig.
func (g Garden) bootstrap(ctx context.Context, own stored) (*rest.Config, error) {
	bootstrap, err := g.bootstrapSecret(ctx)
	if err != nil || bootstrap.config == nil {
		return nil, err
	}
	log.FromContext(ctx).Info(
		"Requesting a client certificate for the garden", "secret", client.ObjectKeyFromObject(bootstrap.secret).String(),
	)
	config := settingsOf(g.Config).apply(bootstrap.config)
	issued, err := g.requester().request(ctx, config)
	if err != nil {
		return nil, err
	}
	config = withCertificate(config, issued.certificate, issued.key)
	if err := writeSecret(ctx, g.Seed, g.Config.KubeconfigSecret, own, config, issued.request); err != nil {
		return nil, err
	}
	return config, g.deleteBootstrapSecret(ctx)
}

// requester returns a requester of client certificates for the Seed.
func (g Garden) requester() requester {
	r := requester{seed: g.SeedName, clock: g.Clock}
	if validity := g.Config.KubeconfigValidity; validity != nil && validity.Validity != nil {
		r.validity = validity.Validity.Duration
	}
	return r
}

// deleteBootstrapSecret deletes the Secret with the bootstrap kubeconfig from the seed.
func (g Garden) deleteBootstrapSecret(ctx context.Context) error {
	reference := g.Config.BootstrapKubeconfig
	if reference == nil {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name}}
	if err := client.IgnoreNotFound(g.Seed.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete the bootstrap kubeconfig in Secret %s/%s of the seed: %w", reference.Namespace, reference.Name, err)
	}
	return nil
}

// endBootstrap deletes the credentials of a bootstrap, so that they cannot be used again. It continues if an earlier
// process was stopped before the end.
func (g Garden) endBootstrap(ctx context.Context, connection *Connection) error {
	own, err := readSecret(ctx, g.Seed, g.Config.KubeconfigSecret)
	if err != nil || own.secret == nil || own.secret.Annotations[annotationBootstrapRequest] == "" {
		return err
	}
	if err := g.deleteBootstrapSecret(ctx); err != nil {
		return err
	}
	garden, err := newClient(connection)
	if err != nil {
		return err
	}
	name := own.secret.Annotations[annotationBootstrapRequest]
	csr, err := garden.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = deleteUser(ctx, garden, csr.Spec.Username)
	}
	if apierrors.IsForbidden(err) {
		// Not permitted yet. The next start tries again. The Seed works without it.
		log.FromContext(ctx).Error(err, "Could not delete the bootstrap credentials in the garden: delete them", "request", name)
		return nil
	}
	if client.IgnoreNotFound(err) != nil { // kube-controller-manager deletes old requests
		return fmt.Errorf("delete the credentials that requested CertificateSigningRequest %s in the garden: %w", name, err)
	}
	return forgetRequest(ctx, g.Seed, own.secret)
}

func newClient(connection *Connection) (kubernetes.Interface, error) {
	config := connection.Config()
	config.Timeout = requestTimeout
	garden, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	return garden, nil
}

const (
	bootstrapUserPrefix  = "system:bootstrap:"
	bootstrapTokenPrefix = "bootstrap-token-"
	accountUserPrefix    = "system:serviceaccount:"
	// bootstrapperRole is the prefix of ClusterRoleBindings that permit ServiceAccounts to bootstrap gardenlets.
	bootstrapperRole = "gardener.cloud:system:seed-bootstrapper:"
)

// deleteUser deletes the bootstrap token of a user, or the ServiceAccount and its ClusterRoleBinding. It does nothing for other users.
func deleteUser(ctx context.Context, garden kubernetes.Interface, user string) error {
	if id, found := strings.CutPrefix(user, bootstrapUserPrefix); found {
		err := garden.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, bootstrapTokenPrefix+id, metav1.DeleteOptions{})
		return client.IgnoreNotFound(err)
	}
	account, found := strings.CutPrefix(user, accountUserPrefix)
	namespace, name, complete := strings.Cut(account, ":")
	if !found || !complete {
		return nil
	}
	err := garden.RbacV1().ClusterRoleBindings().Delete(ctx, bootstrapperRole+account, metav1.DeleteOptions{})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return client.IgnoreNotFound(garden.CoreV1().ServiceAccounts(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

const (
	rootCAName = "kube-root-ca.crt"
	rootCAKey  = "ca.crt"
)

// refreshCA stores and uses the CA of the garden if it has changed, unless the configuration defines the CA.
func (g Garden) refreshCA(ctx context.Context, connection *Connection) error {
	if settingsOf(g.Config).fixedCA() {
		return nil
	}
	garden, err := newClient(connection)
	if err != nil {
		return err
	}
	root, err := garden.CoreV1().ConfigMaps(constants.SystemPublicNamespace).Get(ctx, rootCAName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		log.FromContext(ctx).Info("Keeping the CA of the kubeconfig: the garden does not publish its CA", "reason", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the CA of the garden: %w", err)
	}
	ca := []byte(root.Data[rootCAKey])
	own, err := readSecret(ctx, g.Seed, g.Config.KubeconfigSecret)
	if err != nil || own.config == nil || len(ca) == 0 || bytes.Equal(ca, own.config.CAData) {
		return err
	}
	config := rest.CopyConfig(own.config)
	config.CAData, config.CAFile = ca, ""
	changed := settingsOf(g.Config).apply(config)
	if err := probe(ctx, changed); err != nil {
		log.FromContext(ctx).Error(err, "Keeping the CA of the kubeconfig: the garden is not reachable with the CA that it publishes")
		return nil
	}
	log.FromContext(ctx).Info("The CA of the garden has changed")
	if err := writeSecret(ctx, g.Seed, g.Config.KubeconfigSecret, own, config, ""); err != nil {
		return err
	}
	return connection.Replace(changed)
}

// probe sends a request that needs no permissions.
func probe(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return client.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
}
