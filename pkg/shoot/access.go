package shoot

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// certificateValidity is how long the certificate is valid with which gardenlet requests the first token of a resource-manager.
	certificateValidity = 10 * time.Minute
	// tokenValidity is that of the token, and renewAfter the share of it, in percent, after which the resource-manager renews it itself.
	tokenValidity = 24 * time.Hour
	renewAfter    = 80
	// accessTimeout bounds each request to the API server of a shoot.
	accessTimeout = 15 * time.Second
	// gardenletUser is who gardenlet is in a shoot, and mastersGroup its group, which may do everything from the first moment on.
	gardenletUser = "gardener.cloud:system:gardenlet"
	mastersGroup  = "system:masters"
)

// ensureToken gives the shoot's resource-manager its first token, or another one if it was stopped for too long to renew its own: all others get theirs
// from it. The API server has to answer for that. No certificate for this purpose is kept anywhere.
func (r *reconciler) ensureToken(ctx context.Context, in Inputs, result flow.Result) error {
	if in.hibernated() || in.unknownSecrets() != "" || in.hasToken(accessSecret(resourcemanager.Account)) || !serves(result, in.key(bundleServer)) {
		return nil
	}
	shoot, err := r.connect(in)
	if err != nil {
		return err
	}
	var account *corev1.ServiceAccount
	for _, object := range resourcemanager.ShootRights() {
		if found, isAccount := object.(*corev1.ServiceAccount); isAccount {
			account = found
		}
		if err := shoot.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create what the resource-manager of shoot %s needs in its cluster: %w", in.Namespace, err)
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenValidity.Seconds()))}}
	if err := shoot.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("request a token for the resource-manager of shoot %s: %w", in.Namespace, err)
	}
	return r.writeToken(ctx, in, request)
}

// serves reports whether the present revision of a bundle is applied and healthy.
func serves(result flow.Result, key flow.Key) bool {
	mr := result.Live.ManagedResources[key]
	if mr == nil || mr.DeletionTimestamp != nil || mr.Status.ObservedGeneration != mr.Generation {
		return false
	}
	for _, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
		if resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind).Status != resourcesv1alpha1.ConditionTrue {
			return false
		}
	}
	return true
}

// connect returns a client of the shoot's API server. Its certificate is of the authority that all replicas know.
func (r *reconciler) connect(in Inputs) (client.Client, error) {
	authority, trusted := in.Secrets[constants.SecretNameCAClient].Active.Data, in.Secrets[constants.SecretNameCACluster].Bundle
	credentials, err := kubeconfig.Sign(kubeconfig.Authority{Certificate: authority[secrets.KeyCACert], Key: authority[secrets.KeyCAKey]},
		kubeconfig.Subject{User: gardenletUser, Group: mastersGroup}, certificateValidity, in.Now)
	if err != nil {
		return nil, fmt.Errorf("access shoot %s: %w", in.Namespace, err)
	}
	config := &rest.Config{
		Host: "https://" + in.insideHost(), Timeout: accessTimeout, QPS: shootQPS, Burst: shootQPS, TLSClientConfig: rest.TLSClientConfig{
			ServerName: kubeapiserver.Name, CAData: trusted.Data[secrets.KeyBundleCert], CertData: credentials.Certificate, KeyData: credentials.Key,
		},
	}
	if r.options.Address != nil {
		config.Host = r.options.Address(in.Namespace)
	}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("access shoot %s: %w", in.Namespace, err)
	}
	return c, nil
}

// writeToken stores the token where the resource-manager finds it, and renews it.
func (r *reconciler) writeToken(ctx context.Context, in Inputs, request *authenticationv1.TokenRequest) error {
	secret := resourcemanager.ShootAccessSecret(in.Namespace)
	validity := request.Status.ExpirationTimestamp.Sub(in.Now)
	secret.Annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp] = in.Now.Add(validity * renewAfter / 100).UTC().Format(time.RFC3339)
	secret.Data = map[string][]byte{resourcesv1alpha1.DataKeyToken: []byte(request.Status.Token)}
	err := r.seed.Create(ctx, secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		present := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
		err = r.seed.Patch(ctx, secret, client.StrategicMergeFrom(present), client.FieldOwner(fieldManager))
	}
	if err != nil {
		return fmt.Errorf("write the token of the resource-manager into Secret %s/%s: %w", in.Namespace, secret.Name, err)
	}
	return nil
}
