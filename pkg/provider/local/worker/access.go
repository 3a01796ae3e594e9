package worker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/restclient"
)

const (
	// account is the ServiceAccount in the shoot with which Nodes of machines are drained and deleted.
	account = local.Name + "-machines"
	// bundleToken has the Secret for the token of the account, bundleRights its rights in the shoot.
	bundleToken  = "machines-token"
	bundleRights = "machines-rights"
	roleMachines = "extensions.gardener.cloud:" + local.Name + ":machines"

	// serverName is the name of the Service of a shoot's API server, and a name in its certificate (Gardener).
	serverName = "kube-apiserver"
	// nodesTimeout limits each request to the API server of a shoot.
	nodesTimeout = 15 * time.Second
)

// accessBundles returns the bundles that give access to the Nodes of machines in the shoot: the resource-manager of the shoot fills in
// the token.
func accessBundles(namespace string) []flow.Bundle {
	token := bundles.Seed(namespace, bundleToken)
	token.Objects = []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: constants.PrefixShootAccess + account,
			Labels: map[string]string{
				resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot,
			},
			Annotations: map[string]string{
				resourcesv1alpha1.AnnotationServiceAccountName: account, resourcesv1alpha1.AnnotationServiceAccountNamespace: metav1.NamespaceSystem,
			},
		},
		Type: corev1.SecretTypeOpaque,
	}}
	rights := bundles.Shoot(namespace, bundleRights)
	rights.Objects = []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleMachines}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: roleMachines},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleMachines},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: account}},
		},
	}
	return []flow.Bundle{token, rights}
}

// connect returns a client for the cluster with the Nodes of machines. It returns nil as long as there is no token for the shoot.
func (a *Actuator) connect(ctx context.Context, namespace string, cluster *extension.Cluster) (kubernetes.Interface, error) {
	if a.Machines.Simulated {
		return a.Kube, nil
	}
	if cluster == nil || cluster.GenericKubeconfigName == "" {
		return nil, nil
	}
	token, err := a.secretKey(ctx, namespace, constants.PrefixShootAccess+account, resourcesv1alpha1.DataKeyToken)
	if err != nil || len(token) == 0 {
		return nil, err
	}
	kubeconfig, err := a.secretKey(ctx, namespace, cluster.GenericKubeconfigName, resourcesv1alpha1.DataKeyKubeconfig)
	if err != nil || len(kubeconfig) == 0 {
		return nil, err
	}
	config, err := shootConfig(namespace, kubeconfig, token)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server of %s: %w", namespace, err)
	}
	return kubernetes.NewForConfig(config)
}

// secretKey returns the value of a key, or nothing if the Secret does not exist.
func (a *Actuator) secretKey(ctx context.Context, namespace, name, key string) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := a.Uncached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data[key], nil
}

// shootConfig returns the configuration of a client for the API server of a shoot. The kubeconfig contributes the authorities.
func shootConfig(namespace string, kubeconfig, token []byte) (*rest.Config, error) {
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the generic kubeconfig: %w", err)
	}
	config := &rest.Config{
		Host: "https://" + serverName + "." + namespace + ".svc", BearerToken: string(token), Timeout: nodesTimeout, UserAgent: local.Name,
		TLSClientConfig: rest.TLSClientConfig{ServerName: serverName},
	}
	for _, cluster := range parsed.Clusters {
		config.CAData = cluster.CertificateAuthorityData
	}
	if len(config.CAData) == 0 {
		return nil, fmt.Errorf("the generic kubeconfig has no certificate authorities")
	}
	restclient.Tune(config)
	return config, nil
}
