// Package istio contains the ingress gateways of Istio through which clients reach the API servers of shoots, and Istio's control
// plane. Names, labels, ports and settings are the same as in Gardener, except that gateways never terminate TLS connections to
// API servers, and do not have the port 8132 of old VPN clients.
package istio

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// The names of the images.
const (
	ImageControlPlane = "istio-istiod"
	ImageGateway      = "istio-proxy"
)

const (
	labelInjection = "istio-injection"
	labelOperator  = "istio-operator-managed"
	labelSecurity  = "pod-security.kubernetes.io/enforce"
	version        = "networking.istio.io/v1beta1"
	filterVersion  = "networking.istio.io/v1alpha3"
)

// namespace returns a namespace of Istio. Its Pods are spread over the zones.
func namespace(name string, zones []string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: parts.Merge(map[string]string{
			highavailability.LabelConsider: "true", labelInjection: "disabled", labelOperator: "Reconcile", labelSecurity: "baseline",
		}, labels),
		Annotations: map[string]string{highavailability.AnnotationZones: strings.Join(zones, ",")},
	}}
}

// NamespaceOf returns the namespace of a gateway, for both implementations of gateways.
func NamespaceOf(gateway exposure.Gateway) *corev1.Namespace {
	labels := map[string]string{constants.LabelGardenRole: constants.RoleIstioIngress}
	if gateway.Handler != "" {
		labels[constants.LabelGardenRole] = constants.RoleExposureClassHandler
		labels[constants.LabelExposureClassHandlerName] = gateway.Handler
	}
	return namespace(gateway.Namespace, gateway.Zones, labels)
}

// object returns an object of a kind of Istio.
func object(version, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

// texts returns labels as a map in an unstructured object.
func texts(labels map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range labels {
		all[key] = value
	}
	return all
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// variables returns environment variables, sorted by name.
func variables(of map[string]string) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range sortedKeys(of) {
		all = append(all, corev1.EnvVar{Name: name, Value: of[name]})
	}
	return all
}

func clone(labels map[string]string) map[string]string { return maps.Clone(labels) }
