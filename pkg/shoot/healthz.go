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
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// healthz asks the API server of a Shoot for its health, as the user of its probes. It is not asked before it has a certificate and that user;
// an error before is reported like one of the server. While credentials are rotated, replicas differ in the token that they accept and in the authority
// of their certificate: both are what the control plane has, and what it had before.
func (r *reconciler) healthz(ctx context.Context, shoot *corev1beta1.Shoot) (asked bool, err error) {
	namespace := shoot.Status.TechnicalID
	tokens, err := r.kept(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerName: kubeapiserver.SecretStaticTokens})
	if err != nil || len(tokens) == 0 {
		return err != nil, err
	}
	bundles, err := r.kept(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerBundleFor: constants.SecretNameCACluster})
	if err != nil || len(bundles) == 0 {
		return err != nil, err
	}
	var trusted []byte
	for _, bundle := range bundles {
		trusted = append(trusted, bundle.Data[secrets.KeyBundleCert]...)
	}
	for _, secret := range tokens {
		var token string
		if token, err = (secrets.Item{Current: secrets.Secret{Name: secret.Name, Data: secret.Data}}).Token(kubeapiserver.HealthCheckUser); err != nil {
			return true, err
		}
		if err = r.askHealth(ctx, namespace, token, trusted); !apierrors.IsUnauthorized(err) {
			break
		}
	}
	return true, err
}

// askHealth asks the API server of a control plane for its health.
func (r *reconciler) askHealth(ctx context.Context, namespace, token string, trusted []byte) error {
	config := &rest.Config{
		Host: "https://" + Inputs{Namespace: namespace}.insideHost(), BearerToken: token, Timeout: accessTimeout,
		TLSClientConfig: rest.TLSClientConfig{ServerName: kubeapiserver.Name, CAData: trusted},
	}
	if r.options.Address != nil {
		config.Host = r.options.Address(namespace)
	}
	config.GroupVersion, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	server, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return fmt.Errorf("set up the connection to the API server: %w", err)
	}
	return server.Get().AbsPath("/healthz").Do(ctx).Error()
}

// kept returns the Secrets of a control plane with some labels, the newest first.
func (r *reconciler) kept(ctx context.Context, namespace string, labels client.MatchingLabels) ([]corev1.Secret, error) {
	var list corev1.SecretList
	if err := r.caches.material.List(ctx, &list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("list the Secrets of the control plane in namespace %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return list.Items, nil
}
