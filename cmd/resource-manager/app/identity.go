package app

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The values of controllers.clusterID for which the identity is read from the source cluster.
const (
	identityOfCluster = "<cluster>"
	identityIfThere   = "<default>"
	identityName      = "cluster-identity"
)

// clusterIdentity returns the identity of the source cluster for origins. This is the configured text, or the value in
// the ConfigMap kube-system/cluster-identity. With "<default>", the ConfigMap is optional.
func clusterIdentity(ctx context.Context, source client.Reader, configured string) (string, error) {
	if configured != identityOfCluster && configured != identityIfThere {
		return configured, nil
	}
	configMap := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: identityName}
	err := source.Get(ctx, key, configMap)
	if apierrors.IsNotFound(err) && configured == identityIfThere {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("controllers.clusterID is %s: read the identity of the source cluster from ConfigMap %s: %w",
			configured, key, err)
	}
	identity := configMap.Data[identityName]
	if identity == "" && configured == identityOfCluster {
		return "", fmt.Errorf("controllers.clusterID is %s, but ConfigMap %s of the source cluster has no key %q",
			configured, key, identityName)
	}
	if strings.Contains(identity, ":") {
		return "", fmt.Errorf("the cluster identity %q in ConfigMap %s must not contain a colon", identity, key)
	}
	return identity, nil
}
