package highavailability

import (
	"context"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// surroundings are the facts outside of an object that determine its changes.
type surroundings struct {
	// failureTolerance is the failure tolerance type of the namespace, or nil if the annotation is missing.
	failureTolerance *string
	// zones are the sorted zones for the Pods.
	zones       []string
	zonePinning bool
	// autoscaler has the bounds of the autoscaler of the object, or is nil if no autoscaler scales it.
	autoscaler *bounds
	// severalNodes reports whether there is more than one node.
	severalNodes bool
}

// bounds are the bounds of an autoscaler.
type bounds struct{ most int32 }

// reader reads the surroundings of objects from caches. A new namespace might be missing in the cache, so it is then read
// directly.
type reader struct {
	client.Reader
	direct client.Reader
}

// around returns the surroundings of an object. Its kind is that of the request.
func (r reader) around(ctx context.Context, namespace string, kind schema.GroupKind, name string) (*surroundings, error) {
	found, err := r.namespace(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if found.autoscaler, err = r.autoscaler(ctx, namespace, kind, name); err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := r.List(ctx, nodes, client.Limit(2), client.UnsafeDisableDeepCopy); err != nil {
		return nil, admit.Unavailable("the nodes cannot be read: %w", err)
	}
	found.severalNodes = len(nodes.Items) > 1
	return found, nil
}

// namespace returns the surroundings that the annotations of a namespace define.
func (r reader) namespace(ctx context.Context, name string) (*surroundings, error) {
	namespace := &corev1.Namespace{}
	err := r.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		err = r.direct.Get(ctx, client.ObjectKey{Name: name}, namespace)
	}
	if err != nil {
		return nil, admit.Unavailable("the annotations of namespace %q cannot be read: %w", name, err)
	}
	annotations := namespace.Annotations
	result := &surroundings{
		zones:       zonesOf(annotations[AnnotationZones]),
		zonePinning: resourcesv1alpha1.Truthy(annotations[AnnotationZonePinning]),
	}
	if value, found := annotations[AnnotationFailureTolerance]; found {
		result.failureTolerance = &value
	}
	return result, nil
}

// autoscaler returns the bounds of the HorizontalPodAutoscaler that scales an object. It ignores the version of the kind,
// because an object has the same scale in all versions.
func (r reader) autoscaler(ctx context.Context, namespace string, kind schema.GroupKind, name string) (*bounds, error) {
	autoscalers := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := r.List(ctx, autoscalers, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, admit.Unavailable("the HorizontalPodAutoscalers of namespace %q cannot be read: %w", namespace, err)
	}
	for _, autoscaler := range autoscalers.Items {
		scaled := autoscaler.Spec.ScaleTargetRef
		version, err := schema.ParseGroupVersion(scaled.APIVersion)
		if err == nil && version.Group == kind.Group && scaled.Kind == kind.Kind && scaled.Name == name {
			return &bounds{most: autoscaler.Spec.MaxReplicas}, nil
		}
	}
	return nil, nil //nolint:nilnil // an absent autoscaler is not an error
}

// zonesOf returns the zones of an annotation, sorted and without duplicates.
func zonesOf(value string) []string {
	var zones []string
	for zone := range strings.SplitSeq(value, ",") {
		if zone = strings.TrimSpace(zone); zone != "" {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}
