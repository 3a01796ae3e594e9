package shoot

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
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
