package garden

import (
	"sync"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/crds"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/component/gardensystem"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
)

func (in Inputs) namespace() ([]client.Object, error) {
	return gardensystem.Namespace(in.Garden.Spec.RuntimeCluster.Provider.Zones), nil
}

// readDefinitions returns the CustomResourceDefinitions by bundle. They are large and never change, so they are read once.
var readDefinitions = sync.OnceValues(func() (map[string][]client.Object, error) {
	all := map[string][]client.Object{}
	for bundle, group := range map[string]crds.Group{
		bundleManagedKinds: crds.ManagedResources, bundleExtensionKinds: crds.Extensions, bundleEtcdKinds: crds.Etcd,
		bundleAutoscalerKinds: crds.VerticalPodAutoscaler, bundleIstioKinds: crds.Istio,
	} {
		objects, err := crds.Objects(crds.Values{Groups: []crds.Group{group}})
		if err != nil {
			return nil, err
		}
		all[bundle] = objects
	}
	return all, nil
})

// definitions returns a function that returns the objects of a bundle of definitions.
func definitions(bundle string) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		all, err := readDefinitions()
		return all[bundle], err
	}
}

func (in Inputs) manager() ([]client.Object, error) {
	image, err := in.image(resourcemanager.Image)
	if err != nil {
		return nil, err
	}
	var ingress map[string]string
	if in.withoutIngressController() == "" {
		ingress = nginxingress.Pods()
	}
	return resourcemanager.Objects(resourcemanager.Values{
		Namespace: in.Namespace, Image: image, Replicas: in.replicas(2), VerticalPodAutoscaler: true,
		PriorityClass: constants.PriorityClassGardenSystemCritical, ServerCertificate: in.secret(resourcemanager.SecretServer),
		CABundle: in.bundle(constants.SecretNameCAGardenRuntime),
		Seed: resourcemanager.SeedSettings{
			LogLevel: in.Config.LogLevel, LogFormat: in.Config.LogFormat, NodeToleration: in.Config.NodeToleration,
			NetworkPolicies: in.Config.Controllers.NetworkPolicy.AdditionalNamespaceSelectors,
			SeccompProfile:  in.Config.FeatureGates["DefaultSeccompProfile"], IngressController: ingress,
		},
	})
}

func (in Inputs) system() ([]client.Object, error) { return gardensystem.PriorityClasses(), nil }

func (in Inputs) autoscaler() ([]client.Object, error) {
	values := vpa.Values{
		Namespace: in.Namespace, ServerCertificate: in.secret(vpa.SecretServer), CABundle: in.bundle(constants.SecretNameCAGardenRuntime),
		AdmissionPriorityClass: constants.PriorityClassGardenSystem300, PriorityClass: constants.PriorityClassGardenSystem200,
	}
	if setting := in.settings().VerticalPodAutoscaler; setting != nil {
		values.FeatureGates, values.MaxAllowed = setting.FeatureGates, setting.MaxAllowed
	}
	if err := values.SetImages(in.image); err != nil {
		return nil, err
	}
	return vpa.Objects(values)
}

func (in Inputs) etcdOperator() ([]client.Object, error) {
	values := etcdoperator.Values{
		Namespace: in.Namespace, Etcds: []string{bundleEtcdMain, bundleEtcdEvents}, PriorityClass: constants.PriorityClassGardenSystem300,
		LogLevel: in.Config.LogLevel, LogFormat: in.Config.LogFormat, VerticalPodAutoscaler: true,
	}
	if err := values.SetImages(in.image); err != nil {
		return nil, err
	}
	if config := in.Config.Controllers.Garden.ETCDConfig; config != nil && config.ETCDController != nil {
		values.Workers = ptr.Deref(config.ETCDController.Workers, 0)
	}
	return etcdoperator.Objects(values)
}
