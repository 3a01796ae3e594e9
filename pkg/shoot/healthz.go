package shoot

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// healthz requests the health of a Shoot's API server with the token of its health check user. It sends no request before
// the token and the certificate authority exist. asked is also set if they could not be read. During a rotation, replicas
// differ in the token that they accept and in the authority of their certificate, so the current and the previous ones
// are used.
func (r *reconciler) healthz(ctx context.Context, shoot *corev1beta1.Shoot) (asked bool, err error) {
	namespace := shoot.Status.TechnicalID
	tokens, err := r.generatedSecrets(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerName: kubeapiserver.SecretStaticTokens})
	if err != nil || len(tokens) == 0 {
		return err != nil, err
	}
	bundles, err := r.generatedSecrets(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerBundleFor: constants.SecretNameCACluster})
	if err != nil || len(bundles) == 0 {
		return err != nil, err
	}
	var trusted []byte
	for _, bundle := range bundles {
		trusted = append(trusted, bundle.Data[secrets.KeyBundleCert]...)
	}
	for _, secret := range tokens {
		var token string
		if token, err = (secrets.Item{Current: secrets.Secret{
			Name: secret.Name, Data: secret.Data,
		}}).Token(kubeapiserver.HealthCheckUser); err != nil {
			return true, err
		}
		if err = r.askHealth(ctx, namespace, token, trusted); !apierrors.IsUnauthorized(err) {
			break
		}
	}
	return true, err
}

// askHealth requests the health of the API server of a control plane with one token.
func (r *reconciler) askHealth(ctx context.Context, namespace, token string, trusted []byte) error {
	config := &rest.Config{
		Host: "https://" + Inputs{Namespace: namespace}.insideHost(), BearerToken: token, Timeout: accessTimeout,
		TLSClientConfig: rest.TLSClientConfig{ServerName: kubeapiserver.Name, CAData: trusted},
	}
	if r.options.Address != nil {
		config.Host = r.options.Address(namespace)
	}
	restclient.Tune(config)
	config.GroupVersion, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	server, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return fmt.Errorf("set up the connection to the API server: %w", err)
	}
	return server.Get().AbsPath("/healthz").Do(ctx).Error()
}

// generatedSecrets returns the generated Secrets of a control plane with the given labels, newest first.
func (r *reconciler) generatedSecrets(ctx context.Context, namespace string, labels client.MatchingLabels) ([]corev1.Secret, error) {
	var list corev1.SecretList
	if err := r.caches.material.List(ctx, &list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("list the Secrets of the control plane in namespace %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return list.Items, nil
}
