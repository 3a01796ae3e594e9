package flow

import (
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const extensionsGroup = "extensions.gardener.cloud"

// ExtensionHealth returns the health check of extension objects of a kind. An object is healthy if its controller has
// completed the last request: it has observed the generation, removed the operation annotation, reported no error, and
// finished after the timestamp annotation. The message about an error starts with its codes, so that they reach the
// errors of the owner: see [CodesIn].
func ExtensionHealth(kind string) resourcesv1alpha1.HealthCheck {
	const (
		operation = "(has(metadata.annotations) && '" + annotationOperation + "' in metadata.annotations)"
		observed  = "has(status.observedGeneration) && status.observedGeneration == metadata.generation"
		// The timestamp annotation has fractions of a second, the times in a status do not.
		since = "(!has(metadata.annotations) || !('" + annotationTimestamp + "' in metadata.annotations) || " +
			"timestamp(status.lastOperation.lastUpdateTime) + duration('1s') > timestamp(metadata.annotations['" + annotationTimestamp + "']))"
		healthy = "has(status.lastOperation) && status.lastOperation.state == 'Succeeded' && !has(status.lastError) && " +
			observed + " && !" + operation + " && " + since
	)
	return resourcesv1alpha1.HealthCheck{
		Group: extensionsGroup, Kind: kind, Healthy: healthy,
		Progressing: "!has(status.lastError) && !(" + healthy + ")",
		Failed:      "has(status.lastError)",
		Message: "has(status.lastError) ? (has(status.lastError.codes) && size(status.lastError.codes) > 0 ? " +
			"'[' + status.lastError.codes.join(', ') + '] ' : '') + " +
			"status.lastError.description : (has(status.lastOperation) ? 'the extension has not finished: ' + " +
			"status.lastOperation.description : 'no extension has begun')",
	}
}

// AskExtension annotates an extension object so that its controller executes an operation. The timestamp must change
// only when an operation is due, because an equal timestamp yields an equal manifest. See [OperationOnlyOnChange].
func AskExtension(object client.Object, operation string, at time.Time) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationOperation] = operation
	annotations[annotationTimestamp] = at.UTC().Format(time.RFC3339Nano)
	object.SetAnnotations(annotations)
}

// ForExtension returns the adjustment of a bundle with an extension object of a kind: each change triggers the extension, and only changes, and the health
// of the bundle depends on the result.
func ForExtension(kind string) func(*Bundle) {
	return func(bundle *Bundle) {
		bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{ExtensionHealth(kind)}
		bundle.Spec.DriftDetection = OperationOnlyOnChange()
	}
}

// OperationOnlyOnChange excludes the operation annotation of extension objects from drift detection: it is sent only
// together with other changes. The controllers of extension objects remove the annotation when they start the
// operation.
func OperationOnlyOnChange() *resourcesv1alpha1.DriftDetection {
	return &resourcesv1alpha1.DriftDetection{OnlyOnChange: []resourcesv1alpha1.IgnoreRule{{
		Paths: []string{"/metadata/annotations/gardener.cloud~1operation"},
	}}}
}
