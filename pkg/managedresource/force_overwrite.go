package managedresource

import (
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// referencePrefix begins the annotations that keep the garbage collector from deleting what an object refers to. They
// are always exactly those of the manifest: a stale one would keep its ConfigMap or Secret for ever.
const referencePrefix = "reference.resources.gardener.cloud/"

// foreignKeys returns the labels and annotations that others added and that are to go.
func (in applyInput) foreignKeys(manifest *object.Manifest, observation live.Observation) apply.Strip {
	var strip apply.Strip
	if manifest.Directive.Merge {
		return strip
	}
	if in.forceLabels {
		for _, key := range observation.Labels.All() {
			if _, wanted := manifest.Labels[key]; !wanted && !setByKubernetes(key) {
				strip.Labels = append(strip.Labels, key)
			}
		}
	}
	for _, key := range observation.Annotations.All() {
		_, wanted := manifest.Annotations[key]
		wanted = wanted || key == resourcesv1alpha1.AnnotationOrigin || key == resourcesv1alpha1.AnnotationDescription
		forced := in.forceAnnotations && !setByKubernetes(key) && !strings.HasPrefix(key, "loadbalancer.openstack.org")
		if !wanted && (forced || strings.HasPrefix(key, referencePrefix)) {
			strip.Annotations = append(strip.Annotations, key)
		}
	}
	return strip
}

// setByKubernetes tells which labels and annotations Kubernetes' own controllers would set again at once.
func setByKubernetes(key string) bool {
	return key == "kubernetes.io/metadata.name" || slices.ContainsFunc(
		[]string{"deployment.kubernetes.io/", "pv.kubernetes.io/", "volume.kubernetes.io/"},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
