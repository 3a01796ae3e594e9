package shoot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// healthz asks the API server of a Shoot for its health, as the user of its probes. It is not asked before it has a certificate and that user.
func (r *reconciler) healthz(ctx context.Context, shoot *corev1beta1.Shoot) (error, bool) { //nolint:revive // the signature of care: what the server said, and whether it was asked
	namespace := shoot.Status.TechnicalID
	tokens, err := r.kept(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerName: kubeapiserver.SecretStaticTokens})
	if err != nil || tokens == nil {
		return err, err != nil
	}
	trusted, err := r.kept(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerBundleFor: constants.SecretNameCACluster})
	if err != nil || trusted == nil {
		return err, err != nil
	}
	token, err := secrets.Item{Current: secrets.Secret{Name: tokens.Name, Data: tokens.Data}}.Token(kubeapiserver.HealthCheckUser)
	if err != nil {
		return err, true
	}
	config := &rest.Config{
		Host: "https://" + Inputs{Namespace: namespace}.insideHost(), BearerToken: token, Timeout: accessTimeout,
		TLSClientConfig: rest.TLSClientConfig{ServerName: kubeapiserver.Name, CAData: trusted.Data[secrets.KeyBundleCert]},
	}
	if r.options.Address != nil {
		config.Host = r.options.Address(namespace)
	}
	config.GroupVersion, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	asked, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return fmt.Errorf("set up the connection to the API server: %w", err), true
	}
	return asked.Get().AbsPath("/healthz").Do(ctx).Error(), true
}

// kept returns the newest of the Secrets of a control plane with some labels; nil if there is none.
func (r *reconciler) kept(ctx context.Context, namespace string, labels client.MatchingLabels) (*corev1.Secret, error) {
	var list corev1.SecretList
	if err := r.caches.material.List(ctx, &list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("list the Secrets of the control plane in namespace %s: %w", namespace, err)
	}
	var newest *corev1.Secret
	for i := range list.Items {
		if newest == nil || newest.CreationTimestamp.Before(&list.Items[i].CreationTimestamp) {
			newest = &list.Items[i]
		}
	}
	return newest, nil
}
