package seed

import (
	"fmt"
	"sync"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/clusteridentity"
	"github.com/trellis-k8s/trellis/pkg/component/crds"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/component/gardenletvpa"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/seednamespaces"
	"github.com/trellis-k8s/trellis/pkg/component/seedsystem"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
)

func (in Inputs) namespaces() ([]client.Object, error) {
	return seednamespaces.Objects(seednamespaces.Values{SeedIsGarden: in.IsGarden, Zones: in.Seed.Spec.Provider.Zones})
}

// readDefinitions are functions that return the CustomResourceDefinitions of a group. They are large and never change, so a
// group is read once, when a Seed needs it.
var readDefinitions = func() map[crds.Group]func() ([]client.Object, error) {
	all := map[crds.Group]func() ([]client.Object, error){}
	for _, group := range crds.Groups() {
		all[group] = sync.OnceValues(func() ([]client.Object, error) { return crds.Objects(crds.Values{Groups: []crds.Group{group}}) })
	}
	return all
}()

// definitions returns a function that returns the objects of a bundle of CustomResourceDefinitions.
func (in Inputs) definitions(bundle string) func() ([]client.Object, error) {
	groups := map[string][]crds.Group{
		definitionsManagedResources: {crds.ManagedResources},
		definitionsExtensions:       {crds.Extensions, crds.ShootExtensions, crds.Machines},
		definitionsEtcd:             {crds.Etcd},
		definitionsAutoscaling:      {crds.VerticalPodAutoscaler},
		definitionsIstio:            {crds.Istio},
		definitionsGatewayAPI:       {crds.GatewayAPI},
	}[bundle]
	if bundle == definitionsExtensions && in.IsGarden {
		groups = []crds.Group{crds.ShootExtensions, crds.Machines} // the garden operator deploys the others
	}
	return func() ([]client.Object, error) {
		var wanted []client.Object
		for _, group := range groups {
			objects, err := readDefinitions[group]()
			if err != nil {
				return nil, err
			}
			wanted = append(wanted, objects...)
		}
		return wanted, nil
	}
}

// extensionKinds returns the definitions of the kinds of extensions.
func (in Inputs) extensionKinds() ([]client.Object, error) {
	return in.definitions(definitionsExtensions)()
}

// removable returns copies of objects without the annotation that protects them from deletion.
func removable(objects []client.Object) ([]client.Object, error) {
	copies := make([]client.Object, 0, len(objects))
	for _, object := range objects {
		removed, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return nil, fmt.Errorf("copy %s: a %T has no metadata", object.GetName(), object)
		}
		annotations := removed.GetAnnotations()
		delete(annotations, resourcesv1alpha1.AnnotationKeepObject)
		removed.SetAnnotations(annotations)
		copies = append(copies, removed)
	}
	return copies, nil
}

func (in Inputs) resourceManager() ([]client.Object, error) {
	values, err := in.resourceManagerValues()
	if err != nil {
		return nil, err
	}
	return resourcemanager.Objects(values)
}

func (in Inputs) resourceManagerValues() (resourcemanager.Values, error) {
	image, err := in.image(resourcemanager.Image)
	values := resourcemanager.Values{
		Namespace: in.Namespace, Image: image, Replicas: in.replicas(), VerticalPodAutoscaler: true,
		ServerCertificate: in.secret(resourcemanager.SecretServer), CABundle: in.bundleOfAuthority(),
		Seed: resourcemanager.SeedSettings{
			LogLevel: in.Config.LogLevel, LogFormat: in.Config.LogFormat, NodeToleration: in.Config.NodeToleration,
			SeccompProfile: in.Config.FeatureGates["DefaultSeccompProfile"],
		},
	}
	if in.hasIngressController() {
		values.Seed.IngressController = nginxingress.Pods()
	}
	if controllers := in.Config.Controllers; controllers != nil && controllers.NetworkPolicy != nil {
		values.Seed.NetworkPolicies = controllers.NetworkPolicy.AdditionalNamespaceSelectors
	}
	return values, err
}

// replicas returns the replicas of a component that needs only one: on a single node, a second Pod adds no
// availability.
func (in Inputs) replicas() int32 {
	if in.Nodes == 1 {
		return 1
	}
	return 2
}

func (in Inputs) gardenletScaler() ([]client.Object, error) {
	return gardenletvpa.Objects(gardenletvpa.Values{Namespace: in.Namespace})
}

func (in Inputs) system() ([]client.Object, error) {
	image, err := in.image(seedsystem.ImagePause)
	if err != nil {
		return nil, err
	}
	return seedsystem.Objects(seedsystem.Values{
		Namespace: in.Namespace, Reservations: in.reservations(), Zones: in.Seed.Spec.Provider.Zones, PauseImage: image,
	})
}

func (in Inputs) networkPolicies() ([]client.Object, error) {
	values := networkpolicies.Values{
		Namespace: in.Namespace, Labels: map[string]string{constants.LabelGardenRole: constants.RoleGarden},
		Networks: networkpolicies.OfSeed(in.Seed.Spec.Networks), APIServers: in.APIServers,
	}
	if controllers := in.Config.Controllers; controllers != nil && controllers.NetworkPolicy != nil {
		values.AdditionalSelectors = controllers.NetworkPolicy.AdditionalNamespaceSelectors
	}
	return networkpolicies.Objects(values)
}

func (in Inputs) clusterIdentity() ([]client.Object, error) {
	return clusteridentity.Objects(clusteridentity.Values{Identity: in.Identity, Origin: clusteridentity.OriginSeed})
}

func (in Inputs) autoscaler() ([]client.Object, error) {
	values := vpa.Values{Namespace: in.Namespace, ServerCertificate: in.secret(vpa.SecretServer), CABundle: in.bundleOfAuthority()}
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
		Namespace: in.Namespace,
		LogLevel:  in.Config.LogLevel, LogFormat: in.Config.LogFormat, VerticalPodAutoscaler: true,
	}
	if err := values.SetImages(in.image); err != nil {
		return nil, err
	}
	if config := in.Config.ETCDConfig; config != nil && config.ETCDController != nil {
		values.Workers = ptr.Deref(config.ETCDController.Workers, 0)
	}
	return etcdoperator.Objects(values)
}

// secret returns the name of the current Secret of a config.
func (in Inputs) secret(config string) string { return in.Secrets[config].Current.Name }

// bundleOfAuthority returns the CA bundle that verifies the certificates of the seed's components.
func (in Inputs) bundleOfAuthority() []byte {
	if bundle := in.Secrets[constants.SecretNameCASeed].Bundle; bundle != nil {
		return bundle.Data["bundle.crt"]
	}
	return nil
}
