package gardenerprograms

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/references"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// portHTTPS is the port of the Service of the API server.
const portHTTPS = 443

// volumeKubeconfig is the volume of the charts with the kubeconfig for the virtual garden.
const volumeKubeconfig = "garden"

// Values are the inputs of a program.
type Values struct {
	Program Program
	// Image is the reference of the image.
	Image string
	// Kubeconfig is the Secret of the config generic-token-kubeconfig. The token is in the Secret of [AccessSecret].
	Kubeconfig string
	// Chart are the values of the chart.
	Chart map[string]any
	// Volumes replace volumes of the chart by their names, or are added and mounted at a path of Mounts.
	Volumes map[string]corev1.VolumeSource
	Mounts  map[string]string
	// APIServerAddress is the cluster IP of the Service of the garden's API server in the runtime cluster. Only the API server needs it.
	APIServerAddress string
}

// AccessSecret returns the Secret with the token of a program for the virtual garden. Its resource-manager creates the ServiceAccount and renews
// the token.
func AccessSecret(namespace string, program Program) *corev1.Secret {
	return parts.AccessSecret(namespace, program.Name())
}

// RuntimeObjects returns the objects in the runtime cluster.
func RuntimeObjects(values Values) ([]client.Object, error) {
	rendered, err := values.Program.render(modeRuntime, values.Chart)
	if err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, len(rendered))
	for _, object := range rendered {
		withoutHelm(object)
		if object.GetKind() != "Deployment" {
			objects = append(objects, values.callable(object))
			continue
		}
		deployment, err := values.deployment(object)
		if err != nil {
			return nil, err
		}
		objects = append(objects, deployment)
	}
	return objects, nil
}

// called are the ports of the programs that the API server of the virtual garden calls.
var called = map[Program]int32{APIServer: 8443, AdmissionController: 2721}

// connections are the labels with which the API server of the garden may connect to its etcd, and to webhooks: it calls those for its kinds itself,
// wherever they run.
var connections = map[string]string{
	netpol.LabelPrefix + constants.PrefixVirtualGarden + "etcd-main-client-tcp-2379":                        netpol.LabelValue,
	netpol.LabelPrefix + constants.NetworkPolicyAllWebhookTargets:                                           netpol.LabelValue,
	netpol.LabelPrefix + constants.NetworkPolicyExtensions + "-" + constants.NetworkPolicyAllWebhookTargets: netpol.LabelValue,
	constants.LabelNetworkPolicyToPrivateNetworks:                                                           constants.NetworkPolicyAllowed,
	constants.LabelNetworkPolicyToPublicNetworks:                                                            constants.NetworkPolicyAllowed,
}

// callable lets the API server of the virtual garden connect to the Pods of a Service.
func (v Values) callable(object *unstructured.Unstructured) *unstructured.Unstructured {
	if port, found := called[v.Program]; found && object.GetKind() == "Service" {
		object.SetAnnotations(parts.Merge(object.GetAnnotations(), map[string]string{
			netpol.AliasAnnotation(constants.NetworkPolicyAllWebhookTargets): parts.PortsAllowed(port),
		}))
	}
	return object
}

// VirtualObjects returns the objects in the virtual garden: rights, policies and webhooks. Those that make the virtual garden call the API server are in
// [Registration].
func VirtualObjects(values Values) ([]client.Object, error) {
	return values.virtual(func(kind string) bool { return !registers(kind) })
}

// Registration returns what makes the virtual garden call the API server of the garden. Until its Pods are ready, requests for its kinds would fail, and
// namespaces could not be deleted.
func Registration(values Values) ([]client.Object, error) {
	objects, err := values.virtual(registers)
	return append(values.service(), objects...), err
}

// registers reports whether objects of a kind are those of [Registration]. The Service of the chart is of another type: see service.
func registers(kind string) bool { return kind == "APIService" }

// virtual returns the objects of the chart of some kinds for the virtual garden.
func (v Values) virtual(wanted func(kind string) bool) ([]client.Object, error) {
	rendered, err := v.Program.render(modeVirtual, v.Chart)
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	for _, object := range rendered {
		if kind := object.GetKind(); kind != "Service" && wanted(kind) {
			withoutHelm(object)
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// service returns the Service of the garden's API server in the virtual garden. It has no Pods there, so its endpoint is the Service in the runtime
// cluster. The API server cannot route to a Service of the type ExternalName.
func (v Values) service() []client.Object {
	name, labels := v.Program.Name(), map[string]string{"app": "gardener", "role": string(v.Program)}
	family := discoveryv1.AddressTypeIPv4
	if strings.Contains(v.APIServerAddress, ":") {
		family = discoveryv1.AddressTypeIPv6
	}
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: labels},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: portHTTPS, Protocol: corev1.ProtocolTCP}}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceSystem, Name: name,
				Labels: parts.Merge(labels, map[string]string{discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "gardener-operator"}),
			},
			AddressType: family, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{v.APIServerAddress}}},
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](portHTTPS), Protocol: ptr.To(corev1.ProtocolTCP)}},
		},
	}
}

// deployment returns the Deployment with its image and its volumes. The kubeconfig reads the token from a file that is renewed.
func (v Values) deployment(object *unstructured.Unstructured) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
		return nil, fmt.Errorf("read the Deployment of %s: %w", v.Program.Name(), err)
	}
	template := &deployment.Spec.Template
	metav1.SetMetaDataLabel(&template.ObjectMeta, netpol.LabelPrefix+constants.PrefixVirtualGarden+"kube-apiserver-tcp-443", netpol.LabelValue)
	metav1.SetMetaDataLabel(&template.ObjectMeta, constants.LabelNetworkPolicyToDNS, constants.NetworkPolicyAllowed)
	delete(template.Labels, constants.LabelNetworkPolicyToRuntimeAPIServer)
	if v.Program == APIServer {
		template.Labels = parts.Merge(template.Labels, connections)
	}
	container := &template.Spec.Containers[0]
	container.Image = v.Image
	access, mount := parts.ShootAccess(v.Kubeconfig, parts.AccessSecretName(v.Program.Name()))
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volumeKubeconfig, MountPath: mount.MountPath, ReadOnly: true})
	sources := maps.Clone(v.Volumes)
	if sources == nil {
		sources = map[string]corev1.VolumeSource{}
	}
	sources[volumeKubeconfig] = access.VolumeSource
	for i := range template.Spec.Volumes {
		if source, found := sources[template.Spec.Volumes[i].Name]; found {
			template.Spec.Volumes[i].VolumeSource = source
			delete(sources, template.Spec.Volumes[i].Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: sources[name]})
		container.VolumeMounts = append(container.VolumeMounts, parts.Mount(name, v.Mounts[name]))
	}
	deployment.TypeMeta = metav1.TypeMeta{}
	return deployment, references.InjectAnnotations(deployment)
}

// withoutHelm removes what describes the release of a chart.
func withoutHelm(object *unstructured.Unstructured) {
	for _, path := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
		for _, label := range []string{"instance", "version", "managed-by"} {
			unstructured.RemoveNestedField(object.Object, append(slices.Clone(path), "app.kubernetes.io/"+label)...)
		}
	}
	if annotations := object.GetAnnotations(); annotations["helm.sh/resource-policy"] != "" {
		delete(annotations, "helm.sh/resource-policy")
		object.SetAnnotations(annotations)
	}
}

// SecretSource returns a volume with keys of Secrets, by the names of files: "secret/key" for each file.
func SecretSource(files map[string]string) corev1.VolumeSource {
	projected := &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o440)}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		secret, key, _ := strings.Cut(files[file], "/")
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: []corev1.KeyToPath{{Key: key, Path: file}},
		}})
	}
	return corev1.VolumeSource{Projected: projected}
}

// Secrets returns the configs of the certificates of the API server and the admission controller.
func Secrets(namespace, authority string) []secrets.Config {
	var configs []secrets.Config
	for _, program := range []Program{APIServer, AdmissionController} {
		names := parts.ServiceNames(namespace, program.Name())
		if program == APIServer {
			names = append(names, parts.ServiceNames(metav1.NamespaceSystem, program.Name())...)
		}
		configs = append(configs, secrets.Config{
			Name: program.Name(), Kind: secrets.KindServer, CommonName: program.Name(), DNSNames: names, SignedBy: authority,
			ByOther: true, // all clients get the authorities from this flow, so they trust a new one before it signs
		})
	}
	return configs
}

// File returns an immutable Secret with a file, named after its content.
func File(namespace, name, file string, content []byte) (*corev1.Secret, error) {
	return parts.SecretFiles(namespace, name, map[string]string{"app": "gardener"}, map[string][]byte{file: content})
}
