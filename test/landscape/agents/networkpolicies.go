package agents

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"

	"github.com/trellis-k8s/trellis/test/landscape/policy"
)

func networkPolicies(factory informers.SharedInformerFactory, o Options) (*agent, error) {
	enforcer, err := policy.NewEnforcer()
	if err != nil {
		return nil, err
	}
	pods, namespaces, policies := factory.Core().V1().Pods(), factory.Core().V1().Namespaces(), factory.Networking().V1().NetworkPolicies()
	act := func(ctx context.Context) error {
		var cluster policy.Cluster
		var err error
		if cluster.Pods, err = pods.Lister().List(labels.Everything()); err != nil {
			return err
		}
		if cluster.Namespaces, err = namespaces.Lister().List(labels.Everything()); err != nil {
			return err
		}
		if cluster.Policies, err = policies.Lister().List(labels.Everything()); err != nil {
			return err
		}
		chains := policy.Translate(cluster, o.Node)
		changed, err := enforcer.Apply(ctx, chains)
		if changed {
			klog.InfoS("The rules of NetworkPolicies changed", "chains", len(chains))
		}
		return err
	}
	return newAgent("network-policies", act, pods.Informer(), namespaces.Informer(), policies.Informer())
}
