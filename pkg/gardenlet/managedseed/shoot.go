package managedseed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/clusteraccess"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// gardenletUser is the user of gardenlet in a Shoot.
	gardenletUser = "gardener.cloud:system:gardenlet"
	// shootQPS limits the requests to a Shoot per second.
	shootQPS = 10
)

// connect returns a client of the API server of a Shoot. The authority for its certificate, and that of the server, are those that the flow of
// the Shoot publishes in the garden.
func (r *reconciler) connect(ctx context.Context, shoot *corev1beta1.Shoot) (client.Client, error) {
	if r.Connect != nil {
		return r.Connect(ctx, shoot)
	}
	authority := &corev1beta1.InternalSecret{}
	key := client.ObjectKey{Namespace: shoot.Namespace, Name: shoot.Name + constants.SuffixCAClient}
	if err := r.direct.Get(ctx, key, authority); err != nil {
		return nil, fmt.Errorf("read the authority for clients of Shoot %s in InternalSecret %s of the garden: %w", shoot.Name, key, err)
	}
	bundle := &corev1.ConfigMap{}
	key.Name = shoot.Name + constants.SuffixCACluster
	if err := r.direct.Get(ctx, key, bundle); err != nil {
		return nil, fmt.Errorf("read the authority of Shoot %s in ConfigMap %s of the garden: %w", shoot.Name, key, err)
	}
	connected, err := clusteraccess.Connect(clusteraccess.Connection{
		Host: "https://" + kubeapiserver.Name + "." + shoot.Status.TechnicalID + ".svc", ServerName: kubeapiserver.Name, User: gardenletUser, QPS: shootQPS, Scheme: scheme.Scheme, Now: r.Clock.Now(),
		Authority: secrets.Material(authority.Data), Bundle: secrets.Material{secrets.KeyBundleCert: []byte(bundle.Data[secrets.KeyCACert])},
	})
	if err != nil {
		return nil, fmt.Errorf("access Shoot %s: %w", shoot.Name, err)
	}
	return connected, nil
}
