package references

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var prometheusKind = schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}

// prometheusSpec has the fields in which a Prometheus of the Prometheus operator (monitoring.coreos.com/v1) names
// Secrets and ConfigMaps. gardener-resource-manager's helper reads only containers, volumes and the basicAuth of
// remoteWrite.
type prometheusSpec struct {
	InitContainers   []corev1.Container            `json:"initContainers"`
	Containers       []corev1.Container            `json:"containers"`
	Volumes          []corev1.Volume               `json:"volumes"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets"`
	Secrets          []string                      `json:"secrets"`
	ConfigMaps       []string                      `json:"configMaps"`
	RemoteWrite      []remoteEndpoint              `json:"remoteWrite"`
	RemoteRead       []remoteEndpoint              `json:"remoteRead"`

	AdditionalScrapeConfigs       *corev1.SecretKeySelector `json:"additionalScrapeConfigs"`
	AdditionalAlertRelabelConfigs *corev1.SecretKeySelector `json:"additionalAlertRelabelConfigs"`
	AdditionalAlertManagerConfigs *corev1.SecretKeySelector `json:"additionalAlertManagerConfigs"`
}

type remoteEndpoint struct {
	BasicAuth *basicAuth `json:"basicAuth"`
}

type basicAuth struct {
	Username *corev1.SecretKeySelector `json:"username"`
	Password *corev1.SecretKeySelector `json:"password"`
}

// prometheus annotates a Prometheus and, through podMetadata, its Pods.
func (u users) prometheus(obj *unstructured.Unstructured) error {
	if obj.GroupVersionKind().GroupKind() != prometheusKind {
		return fmt.Errorf("cannot record references of an unstructured %s: must be a %s; use the Go types of other kinds",
			obj.GroupVersionKind().GroupKind(), prometheusKind)
	}
	content, valid := obj.Object["spec"].(map[string]any)
	if !valid && obj.Object["spec"] != nil {
		return fmt.Errorf("read Prometheus %s/%s: its spec is not an object", obj.GetNamespace(), obj.GetName())
	}
	var spec prometheusSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec); err != nil {
		return fmt.Errorf("read the spec of Prometheus %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	u.prometheusSpec(&spec)

	path := []string{"spec", "podMetadata", "annotations"}
	before, found, err := unstructured.NestedStringMap(obj.Object, path...)
	if err != nil {
		return fmt.Errorf("read Prometheus %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	if after := u.replace(before); found || len(after) > 0 {
		if err := unstructured.SetNestedStringMap(obj.Object, after, path...); err != nil {
			return fmt.Errorf("annotate the Pods of Prometheus %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
		}
	}
	u.annotate(obj)
	return nil
}

func (u users) prometheusSpec(spec *prometheusSpec) {
	u.podSpec(&corev1.PodSpec{
		InitContainers: spec.InitContainers, Containers: spec.Containers, Volumes: spec.Volumes, ImagePullSecrets: spec.ImagePullSecrets,
	})
	for _, name := range spec.Secrets {
		u.add(KindSecret, name)
	}
	for _, name := range spec.ConfigMaps {
		u.add(KindConfigMap, name)
	}
	for _, endpoints := range [][]remoteEndpoint{spec.RemoteWrite, spec.RemoteRead} {
		for _, endpoint := range endpoints {
			if endpoint.BasicAuth != nil {
				u.secretKey(endpoint.BasicAuth.Username)
				u.secretKey(endpoint.BasicAuth.Password)
			}
		}
	}
	u.secretKey(spec.AdditionalScrapeConfigs)
	u.secretKey(spec.AdditionalAlertRelabelConfigs)
	u.secretKey(spec.AdditionalAlertManagerConfigs)
}
