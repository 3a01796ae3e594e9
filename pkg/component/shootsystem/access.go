package shootsystem

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// AccessValues are the addresses with which extensions reach the cluster.
type AccessValues struct {
	// Namespace of the control plane.
	Namespace string
	// Inside and Outside are the URLs of the API server for clients in the seed and outside of it.
	Inside, Outside string
}

// AccessSecrets returns the Secrets with administrator kubeconfigs for extensions: one for clients in the seed, and one
// for all others. The shoot's resource-manager adds the tokens and the CA.
func AccessSecrets(values AccessValues) ([]client.Object, error) {
	var objects []client.Object
	for _, each := range []struct{ account, server string }{
		{constants.SecretNameGardener, values.Outside}, {constants.SecretNameGardenerInternal, values.Inside},
	} {
		name := values.Namespace
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Config", "current-context": name,
			"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{"server": each.server}}},
			"users":    []any{map[string]any{"name": name, "user": map[string]any{}}},
			"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
		})
		if err != nil {
			return nil, fmt.Errorf("encode the kubeconfig of %s: %w", each.account, err)
		}
		secret := parts.AccessSecret(values.Namespace, each.account)
		secret.Name, secret.Data = each.account, map[string][]byte{resourcesv1alpha1.DataKeyKubeconfig: text}
		secret.Annotations[resourcesv1alpha1.AnnotationInjectCABundle] = "true"
		objects = append(objects, secret)
	}
	return objects, nil
}

// Access returns the permissions of these administrators in the cluster.
func Access() []client.Object {
	var subjects []rbacv1.Subject
	for _, account := range []string{constants.SecretNameGardener, constants.SecretNameGardenerInternal} {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: account})
	}
	return []client.Object{bind("gardener.cloud:system:gardener", "cluster-admin", subjects...)}
}
