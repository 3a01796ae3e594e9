package shoot

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/clusteraccess"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// shootQPS limits the requests of gardenlet to the API server of a shoot, per second, unless shootClientConnection does.
const shootQPS = 100

const (
	// accessTimeout limits each request to the API server of a shoot.
	accessTimeout = 15 * time.Second
	// gardenletUser is gardenlet's user in a shoot. mastersGroup is its group, which has all permissions even before RBAC objects exist.
	gardenletUser = "gardener.cloud:system:gardenlet"
	mastersGroup  = "system:masters"
)

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
	host := "https://" + in.insideHost()
	if r.options.Address != nil {
		host = r.options.Address(in.Namespace)
	}
	qps, burst := r.options.shootLimits()
	c, err := clusteraccess.Connect(clusteraccess.Connection{
		Host: host, ServerName: kubeapiserver.Name, User: gardenletUser, QPS: qps, Burst: burst, Scheme: scheme.Scheme, Now: in.Now,
		Authority: in.Secrets[constants.SecretNameCAClient].Active.Data, Bundle: in.Secrets[constants.SecretNameCACluster].Bundle.Data,
	})
	if err != nil {
		return nil, fmt.Errorf("access shoot %s: %w", in.Namespace, err)
	}
	return c, nil
}
