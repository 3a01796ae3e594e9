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

// healthz asks the API server of a Shoot for its health, as the user of its probes. It is not asked before it has a certificate and that user;
// an error before is reported like one of the server.
func (r *reconciler) healthz(ctx context.Context, shoot *corev1beta1.Shoot) (asked bool, err error) {
	namespace := shoot.Status.TechnicalID
	tokens, err := r.kept(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerName: kubeapiserver.SecretStaticTokens})
	if err != nil || tokens == nil {
		return err != nil, err
	}
	trusted, err := r.kept(ctx, namespace, client.MatchingLabels{constants.LabelSecretsManagerBundleFor: constants.SecretNameCACluster})
	if err != nil || trusted == nil {
		return err != nil, err
	}
	token, err := secrets.Item{Current: secrets.Secret{Name: tokens.Name, Data: tokens.Data}}.Token(kubeapiserver.HealthCheckUser)
	if err != nil {
		return true, err
	}
	config := &rest.Config{
		Host: "https://" + Inputs{Namespace: namespace}.insideHost(), BearerToken: token, Timeout: accessTimeout,
		TLSClientConfig: rest.TLSClientConfig{ServerName: kubeapiserver.Name, CAData: trusted.Data[secrets.KeyBundleCert]},
	}
	if r.options.Address != nil {
		config.Host = r.options.Address(namespace)
	}
	config.GroupVersion, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	server, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return true, fmt.Errorf("set up the connection to the API server: %w", err)
	}
	return true, server.Get().AbsPath("/healthz").Do(ctx).Error()
}

// kept returns the newest of the Secrets of a control plane with some labels; nil if none has them.
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
