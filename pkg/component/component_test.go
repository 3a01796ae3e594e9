package component

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/clusteridentity"
	"github.com/trellis-k8s/trellis/pkg/component/crds"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/component/gardenletvpa"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/seednamespaces"
	"github.com/trellis-k8s/trellis/pkg/component/seedsystem"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// component is a component with all its optional parts.
type component struct {
	name    string
	objects []client.Object
	secrets []secrets.Config
}

const namespace = constants.GardenNamespace

// seed returns all components of a seed with all settings, and with images from the list.
func seed(t *testing.T) []component {
	t.Helper()
	var all []component
	add := func(name string, configs []secrets.Config) func([]client.Object, error) {
		return func(objects []client.Object, err error) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, component{name, objects, configs})
		}
	}
	zones := []string{"a", "b", "c"}
	add("seednamespaces", nil)(seednamespaces.Objects(seednamespaces.Values{Zones: zones}))
	add("crds", nil)(crds.Objects(crds.Values{Groups: []crds.Group{
		crds.ManagedResources, crds.Extensions, crds.ShootExtensions, crds.Machines, crds.Etcd, crds.VerticalPodAutoscaler,
	}}))
	add("seedsystem", nil)(seedsystem.Objects(seedsystem.Values{
		Namespace: namespace, Zones: zones, PauseImage: image(t, seedsystem.ImagePause),
		Reservations: []corev1beta1.SeedSettingExcessCapacityReservationConfig{
			{Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
			{Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		},
	}))
	add("clusteridentity", nil)(clusteridentity.Objects(clusteridentity.Values{Identity: "one", Origin: clusteridentity.OriginSeed}))
	add("gardenletvpa", nil)(gardenletvpa.Objects(gardenletvpa.Values{Namespace: namespace}))
	manager := resourcemanager.Values{
		Namespace: namespace, Image: image(t, resourcemanager.Image), Replicas: 2, VerticalPodAutoscaler: true, CABundle: []byte("bundle"),
		ServerCertificate: secretOf(resourcemanager.SecretServer),
	}
	add("resourcemanager", resourcemanager.Secrets(manager, constants.SecretNameCASeed))(resourcemanager.Objects(manager))
	scaler := vpa.Values{
		Namespace: namespace, AdmissionControllerImage: image(t, vpa.ImageAdmissionController), RecommenderImage: image(t, vpa.ImageRecommender),
		UpdaterImage: image(t, vpa.ImageUpdater), ServerCertificate: secretOf(vpa.SecretServer), CABundle: []byte("bundle"),
	}
	add("vpa", vpa.Secrets(scaler, constants.SecretNameCASeed))(vpa.Objects(scaler))
	add("etcdoperator", nil)(etcdoperator.Objects(etcdoperator.Values{
		Namespace: namespace, Image: image(t, etcdoperator.Image), MemberImage: image(t, etcdoperator.ImageMember), VerticalPodAutoscaler: true,
	}))
	add("networkpolicies", nil)(networkpolicies.Objects(networkpolicies.Values{
		Namespace: namespace, APIServers: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443")},
		Networks: networkpolicies.Networks{Nodes: []string{"10.0.0.0/16"}, Pods: []string{"10.1.0.0/16"}, Services: []string{"10.2.0.0/16"}},
	}))
	return all
}

// image returns an image from the list.
func image(t *testing.T, name string) string {
	t.Helper()
	vector, err := images.Load("")
	if err != nil {
		t.Fatal(err)
	}
	found, err := vector.Find(name, images.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Reference
}

// secretOf returns the name of the Secret of a config.
func secretOf(config string) string { return config + "-12345678" }

// deployments returns the Deployments of a component.
func (c component) deployments() []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, object := range c.objects {
		if deployment, isDeployment := object.(*appsv1.Deployment); isDeployment {
			all = append(all, deployment)
		}
	}
	return all
}

// has reports whether a component has an object.
func (c component) has(t *testing.T, kind, namespace, name string) bool {
	t.Helper()
	return slices.ContainsFunc(c.objects, func(object client.Object) bool {
		return object.GetName() == name && object.GetNamespace() == namespace && golden.Unstructured(t, object).GetKind() == kind
	})
}

// TestImages checks that containers run only images from the list.
func TestImages(t *testing.T) {
	vector, err := images.Load("")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, source := range vector {
		if found, err := vector.Find(source.Name, images.Options{}); err == nil {
			known[found.Reference] = true
		}
	}
	for _, c := range seed(t) {
		for _, deployment := range c.deployments() {
			for _, container := range slices.Concat(deployment.Spec.Template.Spec.InitContainers, deployment.Spec.Template.Spec.Containers) {
				if !known[container.Image] {
					t.Errorf("%s: the container %s runs the image %q, which is not in the list", c.name, container.Name, container.Image)
				}
			}
		}
	}
}

// TestWhatPodsUse checks that every object that a Pod uses is in the same component, is requested by it, or belongs to an
// earlier component.
func TestWhatPodsUse(t *testing.T) {
	all := seed(t)
	classes := map[string]bool{constants.PriorityClassSystemCritical: true} // part of gardenlet's chart
	for _, c := range all {
		for _, object := range c.objects {
			if golden.Unstructured(t, object).GetKind() == "PriorityClass" {
				classes[object.GetName()] = true
			}
		}
	}
	for _, c := range all {
		for _, deployment := range c.deployments() {
			pod := deployment.Spec.Template.Spec
			if !classes[pod.PriorityClassName] {
				t.Errorf("%s: Deployment %s has the PriorityClass %q, which does not exist", c.name, deployment.Name, pod.PriorityClassName)
			}
			if pod.ServiceAccountName != "" && !c.has(t, "ServiceAccount", deployment.Namespace, pod.ServiceAccountName) {
				t.Errorf("%s: Deployment %s has the ServiceAccount %q, which does not exist", c.name, deployment.Name, pod.ServiceAccountName)
			}
			for _, volume := range pod.Volumes {
				switch {
				case volume.Secret != nil:
					if !c.hasSecret(t, deployment.Namespace, volume.Secret.SecretName) {
						t.Errorf("%s: Deployment %s mounts the Secret %q, which no component requests", c.name, deployment.Name, volume.Secret.SecretName)
					}
				case volume.ConfigMap != nil:
					if !c.has(t, "ConfigMap", deployment.Namespace, volume.ConfigMap.Name) {
						t.Errorf("%s: Deployment %s mounts the ConfigMap %q, which does not exist", c.name, deployment.Name, volume.ConfigMap.Name)
					}
				default:
					t.Errorf("%s: Deployment %s has the volume %q: add its kind to this test", c.name, deployment.Name, volume.Name)
				}
			}
		}
	}
}

// hasSecret reports whether a Secret is emitted or requested.
func (c component) hasSecret(t *testing.T, namespace, name string) bool {
	t.Helper()
	return c.has(t, "Secret", namespace, name) ||
		slices.ContainsFunc(c.secrets, func(config secrets.Config) bool { return secretOf(config.Name) == name })
}

// TestSecrets checks that the certificates can be generated, and that no two components request the same one.
func TestSecrets(t *testing.T) {
	configs := []secrets.Config{{Name: constants.SecretNameCASeed, Kind: secrets.KindCA, KeepOld: true}}
	for _, c := range seed(t) {
		configs = append(configs, c.secrets...)
	}
	result, err := secrets.Resolve(configs, secrets.State{Identity: "test"})
	if err != nil || len(result.Missing) != 1 || len(result.Items) != 0 { // the certificates need the authority first
		t.Errorf("missing %d, %d items, %v", len(result.Missing), len(result.Items), err)
	}
}

// TestServices checks that Services and PodDisruptionBudgets select Pods of their component, and that Services target ports of
// these Pods.
func TestServices(t *testing.T) {
	for _, c := range seed(t) {
		for _, object := range c.objects {
			service, isService := object.(*corev1.Service)
			if !isService {
				continue
			}
			var ports []int32
			for _, deployment := range c.deployments() {
				if selects(service.Spec.Selector, deployment.Spec.Template.Labels) {
					for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
						ports = append(ports, port.ContainerPort)
					}
				}
			}
			for _, port := range service.Spec.Ports {
				if !slices.Contains(ports, port.TargetPort.IntVal) {
					t.Errorf("%s: Service %s targets port %s, but its Pods have %v", c.name, service.Name, port.TargetPort.String(), ports)
				}
			}
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// TestPods checks that Pods have no privileges, and that Pods that use the API server may connect to it.
func TestPods(t *testing.T) {
	for _, c := range seed(t) {
		for _, deployment := range c.deployments() {
			template := deployment.Spec.Template
			name := c.name + ": Deployment " + deployment.Name
			if !selects(deployment.Spec.Selector.MatchLabels, template.Labels) {
				t.Errorf("%s does not select its own Pods", name)
			}
			if allowed := template.Labels[constants.LabelNetworkPolicyToRuntimeAPIServer] != ""; allowed != (template.Spec.ServiceAccountName != "") {
				t.Errorf("%s may connect to the API server: %t, its ServiceAccount is %q", name, allowed, template.Spec.ServiceAccountName)
			}
			pod := template.Spec.SecurityContext
			if pod == nil || !ptr.Deref(pod.RunAsNonRoot, false) || pod.SeccompProfile == nil {
				t.Errorf("%s runs its Pods with privileges: %+v", name, pod)
			}
			for _, container := range template.Spec.Containers {
				security := container.SecurityContext
				if ptr.Deref(security.AllowPrivilegeEscalation, true) || !ptr.Deref(security.ReadOnlyRootFilesystem, false) || len(security.Capabilities.Drop) != 1 {
					t.Errorf("%s runs the container %s with privileges: %+v", name, container.Name, security)
				}
				if len(container.Resources.Requests) == 0 {
					t.Errorf("%s: the container %s has no resource requests", name, container.Name)
				}
			}
		}
	}
}

// TestObjects checks that no two components have the same object, that all namespaces exist, and that the same values result in
// the same bytes.
func TestObjects(t *testing.T) {
	all := seed(t)
	again := seed(t)
	owner := map[string]string{}
	for i, c := range all {
		if string(golden.Text(t, c.objects)) != string(golden.Text(t, again[i].objects)) {
			t.Errorf("%s: the same values result in different objects", c.name)
		}
		for _, object := range c.objects {
			kind := golden.Unstructured(t, object).GroupVersionKind().GroupKind().String()
			key := strings.Join([]string{kind, object.GetNamespace(), object.GetName()}, "/")
			if other := owner[key]; other != "" {
				t.Errorf("%s and %s both have the object %s", other, c.name, key)
			}
			owner[key] = c.name
			if in := object.GetNamespace(); in != "" && owner["Namespace//"+in] == "" {
				t.Errorf("%s has %s in a namespace that no earlier component creates", c.name, key)
			}
		}
	}
}
