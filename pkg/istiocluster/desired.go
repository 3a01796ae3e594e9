// Package istiocluster computes EnvoyFilters for Istio's ingress gateways from DestinationRules. It has no client;
// package controller writes the EnvoyFilters. As in gardener-resource-manager, the gateways get small buffers for each
// connection to a Service, and small windows and a maximum duration for HTTP/2 connections.
package istiocluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// LabelManagedBy is the key of the label of the EnvoyFilters.
	LabelManagedBy = "resources.gardener.cloud/managed-by"
	// ManagedBy is its value.
	ManagedBy = "istio-cluster-configuration"
	// AnnotationExportTo of a Service lists the namespaces in which it is visible.
	AnnotationExportTo = "networking.istio.io/exportTo"

	// LabelRole is the key of the label that defines the role of a namespace.
	LabelRole = "gardener.cloud/role"
	// RoleIstioIngress is its value for a namespace with ingress gateways.
	RoleIstioIngress = "istio-ingress"
	// LabelExposureClass is the key of a label that a namespace with ingress gateways may have instead, with any value.
	LabelExposureClass = "handler.exposureclass.gardener.cloud/name"

	// nameSuffix follows the name of the source namespace in the names of EnvoyFilters.
	nameSuffix = "-cluster-configuration"
)

// EnvoyFilterKind is the kind of the written objects.
var EnvoyFilterKind = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1alpha3", Kind: "EnvoyFilter"}

// Source is a namespace with DestinationRules.
type Source struct {
	Name string
	UID  types.UID
	// Rules are all its DestinationRules, in any order.
	Rules []*Rule
	// Services are the existing Services of the Rules, by name.
	Services map[types.NamespacedName]Service
}

// IsIngress reports whether a namespace with the given labels has ingress gateways of Istio.
func IsIngress(labels map[string]string) bool {
	_, hasClass := labels[LabelExposureClass]
	return hasClass || labels[LabelRole] == RoleIstioIngress
}

// FilterName returns the name of the EnvoyFilters for a source namespace.
func FilterName(source string) string { return source + nameSuffix }

// SourceOf returns the source namespace of an EnvoyFilter with the given name; empty if the name has another form.
func SourceOf(filter string) string {
	source, _ := strings.CutSuffix(filter, nameSuffix)
	if source == filter {
		return ""
	}
	return source
}

// Desired returns the desired EnvoyFilters for a source namespace. There is at most one in each of the namespaces with
// ingress gateways. They are sorted by namespace. The order of the arguments does not matter.
func Desired(source Source, ingresses []string) []*unstructured.Unstructured {
	rules := slices.SortedFunc(slices.Values(source.Rules), func(a, b *Rule) int { return cmp.Compare(a.Name, b.Name) })
	var filters []*unstructured.Unstructured
	for _, ingress := range slices.Compact(slices.Sorted(slices.Values(ingresses))) {
		if patches := patchesFor(source, rules, ingress); len(patches) > 0 {
			filters = append(filters, filter(source, ingress, patches))
		}
	}
	return filters
}

// patchesFor returns the patches for the gateways in a namespace. If several rules are for the same Service, the first
// one counts.
func patchesFor(source Source, rules []*Rule, ingress string) []any {
	var patches []any
	done := map[types.NamespacedName]bool{}
	for _, rule := range rules {
		service, exists := source.Services[rule.Service]
		if !exists || done[rule.Service] || !rule.Exports.include(ingress, source.Name) ||
			!service.Exports.include(ingress, service.Namespace) {
			continue
		}
		done[rule.Service] = true
		numbers := map[int32]bool{} // a TCP port and a UDP port may have the same number
		for _, port := range service.Ports {
			if !numbers[port.Number] {
				patches = append(patches, patch(service.NamespacedName, port.Number, rule.modeFor(port)))
			}
			numbers[port.Number] = true
		}
	}
	return patches
}

func (r *Rule) modeFor(port Port) Mode {
	mode := cmp.Or(r.PortModes[int64(port.Number)], r.Mode)
	if mode == "" && port.HTTP2 {
		return HTTP2
	}
	return mode
}

func filter(source Source, namespace string, patches []any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"configPatches": patches}}}
	object.SetGroupVersionKind(EnvoyFilterKind)
	object.SetNamespace(namespace)
	object.SetName(FilterName(source.Name))
	object.SetLabels(map[string]string{LabelManagedBy: ManagedBy})
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Namespace", Name: source.Name, UID: source.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}})
	return object
}

// patch returns the settings for a port of a Service.
func patch(service types.NamespacedName, port int32, mode Mode) map[string]any {
	value := map[string]any{"per_connection_buffer_limit_bytes": int64(32768)}
	if mode != "" {
		const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
		key := "explicit_http_config"
		if mode == Downstream {
			key = "use_downstream_protocol_config"
		}
		value["typed_extension_protocol_options"] = map[string]any{options: map[string]any{
			"@type":                        "type.googleapis.com/" + options,
			"common_http_protocol_options": map[string]any{"max_connection_duration": "86400s"},
			key: map[string]any{"http2_protocol_options": map[string]any{
				"initial_stream_window_size": int64(65536), "initial_connection_window_size": int64(1048576),
			}},
		}}
	}
	return map[string]any{
		"applyTo": "CLUSTER",
		"match": map[string]any{
			"context": "GATEWAY",
			"cluster": map[string]any{"name": fmt.Sprintf("outbound|%d||%s.%s%s", port, service.Name, service.Namespace, clusterDomain)},
		},
		"patch": map[string]any{"operation": "MERGE", "value": value},
	}
}

// Digest returns a hash of the parts of an EnvoyFilter that this package sets: the spec, the owners and the label.
// Other labels and annotations do not count.
func Digest(object *unstructured.Unstructured) string {
	owners := object.GetOwnerReferences()
	slices.SortFunc(owners, func(a, b metav1.OwnerReference) int { return cmp.Compare(a.UID, b.UID) })
	content, err := json.Marshal([]any{object.Object["spec"], owners, object.GetLabels()[LabelManagedBy]})
	if err != nil {
		return "" // unreachable: the object was decoded from JSON
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}
