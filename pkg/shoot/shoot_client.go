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
	// certificateValidity is the validity of the client certificate with which gardenlet requests the first token of a resource-manager.
	certificateValidity = 10 * time.Minute
	// tokenValidity is the validity of that token. The resource-manager renews it after renewAfter percent of it.
	tokenValidity = 24 * time.Hour
	renewAfter    = 80
	// accessTimeout limits each request to the API server of a shoot.
	accessTimeout = 15 * time.Second
	// gardenletUser is gardenlet's user in a shoot. mastersGroup is its group, which has all permissions even before RBAC objects exist.
	gardenletUser = "gardener.cloud:system:gardenlet"
	mastersGroup  = "system:masters"
)

// ensureToken requests a token for the shoot's resource-manager: its first one, or a new one if it was stopped for too
// long to renew its own, or if the API server rejects it. The resource-manager requests the tokens of all other components.
// The API server must be available. The client certificate for the request is not stored.
func (r *reconciler) ensureToken(ctx context.Context, in Inputs, result flow.Result) error {
	hasToken := in.hasToken(accessSecret(resourcemanager.Account))
	if in.hibernated() || in.unknownSecrets() != "" || hasToken && !in.lockedOut(result) || !serves(result, in.key(bundleAPIServer)) {
		return nil
	}
	if err := r.recordServed(ctx, in); err != nil {
		return err
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
			return fmt.Errorf("create the RBAC objects of the resource-manager in shoot %s: %w", in.Namespace, err)
		}
	}
	if hasToken {
		if accepted, err := r.acceptsToken(ctx, in, shoot); err != nil || accepted {
			return err // the resource-manager has not read its new token yet
		}
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenValidity.Seconds()))},
	}
	if err := shoot.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("request a token for the resource-manager of shoot %s: %w", in.Namespace, err)
	}
	return r.writeToken(ctx, in, request)
}

// serves reports whether the current revision of a bundle is applied and healthy.
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

// connect returns a client of the shoot's API server. The authority that signs its certificate is one that all replicas trust.
func (r *reconciler) connect(in Inputs) (client.Client, error) {
	if why := in.unknownSecrets(); why != "" {
		return nil, fmt.Errorf("access shoot %s: %s", in.Namespace, why)
	}
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

// writeToken stores the token in the access Secret of the resource-manager.
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
