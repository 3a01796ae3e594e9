package managedresource

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// replaceOf returns whether an object is to be replaced when its update is invalid.
func replaceOf(manifest *object.Manifest) apply.Replace {
	replace := apply.Replace{
		Allowed:   manifest.Directive.Replace,
		Immutable: isConfiguration(manifest.Key()),
	}
	const key = resourcesv1alpha1.AnnotationDeletionPropagationOnInvalidUpdate
	switch policy := metav1.DeletionPropagation(manifest.Annotations[key]); policy {
	case "":
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		replace.Propagation = &policy
	default:
		replace.Err = fmt.Errorf("invalid deletion propagation policy: annotation %s is %q, use Background, Foreground or Orphan", key, policy)
	}
	return replace
}

// isConfiguration reports whether the object is a ConfigMap or a Secret.
func isConfiguration(key object.Key) bool {
	return key.Group == "" && (key.Kind == "ConfigMap" || key.Kind == "Secret")
}

// waitForDeletion decides about an object that is being deleted: its finalizers are removed once the time has passed
// that it grants them by its annotation. Only positive durations count.
func waitForDeletion(observation live.Observation, now time.Time) change {
	wait := change{action: actionWait, reason: "it is being deleted"}
	if observation.FinalizeAfter == "" {
		return wait
	}
	grace, err := time.ParseDuration(observation.FinalizeAfter)
	switch {
	case err != nil || grace < 0:
		wait.reason = fmt.Sprintf("it is being deleted; its annotation %s is no positive duration such as 1h and is not heeded",
			resourcesv1alpha1.AnnotationFinalizeDeletionAfter)
	case grace > 0 && now.Before(observation.Deleting.Add(grace)):
		wait.due = observation.Deleting.Add(grace)
	case grace > 0:
		wait.reason, wait.finalize = "it is being deleted; its finalizers are removed after "+observation.FinalizeAfter, true
	}
	return wait
}
