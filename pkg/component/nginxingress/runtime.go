package nginxingress

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

const (
	// Service is the name of the Service of the controller in a seed.
	Service = "nginx-ingress-controller"
	// Port is the port of the Service for TLS.
	Port = portHTTPS
	// Class is the name of its IngressClass.
	Class = "nginx-ingress-gardener"
	// LabelToController is the label of Pods of other namespaces that may connect to the controller.
	LabelToController = netpol.LabelPrefix + constants.GardenNamespace + "-" + Service + "-tcp-443"
)

// RuntimeValues are the inputs of the controller of a seed, or of the runtime cluster of a garden.
type RuntimeValues struct {
	// Image and ImageBackend are the references of the images named by the constants.
	Image, ImageBackend string
	Namespace           string
	Replicas            int32
	PriorityClass       string
	// Config overrides settings of nginx: providerConfig of the ingress, an object of texts; nil for none.
	Config *runtime.RawExtension
	// Gateways are the namespaces of the gateways that forward connections to the controller.
	Gateways []string
	// Balancer are the settings of a load balancer of its own; nil for none.
	Balancer *exposure.Balancer
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The cluster must define the kind.
	VerticalPodAutoscaler bool
}

// The feature gates without which a seed, and the runtime cluster of a garden, have a controller (Gardener).
const (
	GateOfSeed   = "DisableNginxIngressInSeed"
	GateOfGarden = "DisableNginxIngressInGarden"
)

// Disabled reports whether a feature gate removes the controller. By default it does, as in the newest versions of Gardener: nginx gets no more security
// fixes, and reads the Secrets of all namespaces.
func Disabled(gates map[string]bool, name string) bool {
	enabled, found := gates[name]
	return enabled || !found
}

// SetImages sets the images. image returns the reference of an image by its name.
func (v *RuntimeValues) SetImages(image func(name string) (string, error)) (err error) {
	if v.Image, err = image(Image); err != nil {
		return err
	}
	v.ImageBackend, err = image(ImageBackend)
	return err
}

// Pods selects the Pods of the controller of a seed, or of the runtime cluster of a garden.
func Pods() map[string]string {
	return map[string]string{"app": "nginx-ingress", "component": componentController}
}

// RuntimeObjects returns the objects of the controller of a seed, or of the runtime cluster of a garden. The error is that of a configuration that is not
// an object of texts.
func RuntimeObjects(values RuntimeValues) ([]client.Object, error) {
	config, err := readConfig(values.Config)
	if err != nil {
		return nil, err
	}
	const backend = "nginx-ingress-k8s-backend"
	controller := settings{
		namespace: values.Namespace, account: "nginx-ingress", rights: "gardener.cloud:seed:nginx-ingress", controller: Service, backend: backend,
		backendContainer: backend, class: Class, lease: "ingress-controller-seed-leader", label: map[string]string{"app": "nginx-ingress"},
		controllerLabels: map[string]string{highavailability.LabelType: parts.TypeServer}, controllerPods: map[string]string{
			constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + backend + "-tcp-8080":     netpol.LabelValue,
		},
		priorityClass: values.PriorityClass, replicas: values.Replicas, memory: "375Mi", maxMemory: "1500Mi", autoscaler: values.VerticalPodAutoscaler, budget: true,
		image: values.Image, backendImage: values.ImageBackend, config: config,
	}
	objects, err := controller.objects()
	if err != nil {
		return nil, err
	}
	service, err := values.service(controller)
	if err != nil {
		return nil, err
	}
	return append(objects, service), nil
}

// service returns the Service. Gateways may connect to it, and everybody to its load balancer.
func (v RuntimeValues) service(of settings) (*corev1.Service, error) {
	service := of.service()
	service.Spec.Type, service.Spec.IPFamilyPolicy = corev1.ServiceTypeClusterIP, ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	service.Annotations = map[string]string{}
	if len(v.Gateways) > 0 {
		clients := make([]metav1.LabelSelector, 0, len(v.Gateways))
		for _, gateway := range v.Gateways {
			clients = append(clients, parts.Namespaced(gateway))
		}
		selectors, err := parts.NamespacesAllowed(clients...)
		if err != nil {
			return nil, err
		}
		service.Annotations[netpol.AnnotationNamespaceSelectors] = selectors
	}
	if v.Balancer != nil {
		parts.Balance(service, *v.Balancer, portHTTPS, portHTTP)
	}
	return service, nil
}

// readConfig decodes the settings of nginx.
func readConfig(raw *runtime.RawExtension) (map[string]string, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil //nolint:nilnil // no settings
	}
	config := map[string]string{}
	if err := json.Unmarshal(raw.Raw, &config); err != nil {
		return nil, fmt.Errorf("providerConfig of the ingress controller nginx must be an object of texts, such as {\"use-gzip\": \"true\"}: %w", err)
	}
	return config, nil
}
