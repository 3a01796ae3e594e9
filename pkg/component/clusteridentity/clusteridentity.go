// Package clusteridentity contains the ConfigMap with the identity of a cluster.
package clusteridentity

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// OriginSeed is the origin of the identity of a seed. A ConfigMap with another origin, such as a shoot's, must not be
// changed.
const OriginSeed = "seed"

// OriginShoot is the origin of the identity of a shoot.
const OriginShoot = "shoot"

// Values are the inputs of the component.
type Values struct {
	// Identity of the cluster. It never changes.
	Identity string
	// Origin is the component that assigned the identity.
	Origin string
}

// Objects returns the objects of the component. It returns an error if the identity or its origin is empty.
func Objects(values Values) ([]client.Object, error) {
	if values.Identity == "" || values.Origin == "" {
		return nil, errors.New("the identity of the cluster and its origin must be known")
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentityName},
		Data:       map[string]string{constants.ClusterIdentityName: values.Identity, constants.ClusterIdentityOrigin: values.Origin},
		Immutable:  ptr.To(true),
	}}, nil
}
