package flow

import (
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const extensionsGroup = "extensions.gardener.cloud"

// ExtensionHealth returns the check of extension objects of a kind. It is healthy when its controller has finished what was asked for last:
// it has observed the generation, has taken the operation away, has no error, and has finished since the timestamp. The message about an error
// begins with its codes, so that they reach the errors of the owner: see [CodesIn].
func ExtensionHealth(kind string) resourcesv1alpha1.HealthCheck {
	const (
		operation = "(has(metadata.annotations) && '" + annotationOperation + "' in metadata.annotations)"
		observed  = "has(status.observedGeneration) && status.observedGeneration == metadata.generation"
		// Timestamps have fractions of a second, the times in a status have none.
		since = "(!has(metadata.annotations) || !('" + annotationTimestamp + "' in metadata.annotations) || " +
			"timestamp(status.lastOperation.lastUpdateTime) + duration('1s') > timestamp(metadata.annotations['" + annotationTimestamp + "']))"
		healthy = "has(status.lastOperation) && status.lastOperation.state == 'Succeeded' && !has(status.lastError) && " +
			observed + " && !" + operation + " && " + since
	)
	return resourcesv1alpha1.HealthCheck{
		Group: extensionsGroup, Kind: kind, Healthy: healthy,
		Progressing: "!has(status.lastError) && !(" + healthy + ")",
		Failed:      "has(status.lastError)",
		Message: "has(status.lastError) ? (has(status.lastError.codes) && size(status.lastError.codes) > 0 ? '[' + status.lastError.codes.join(', ') + '] ' : '') + " +
			"status.lastError.description : (has(status.lastOperation) ? 'the extension has not finished: ' + " +
			"status.lastOperation.description : 'no extension has begun')",
	}
}

// AskExtension annotates an extension object so that its controller carries out an operation. The time changes only when an operation is
// due: the same time gives the same manifest. See [OperationOnlyOnChange].
func AskExtension(object client.Object, operation string, at time.Time) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationOperation] = operation
	annotations[annotationTimestamp] = at.UTC().Format(time.RFC3339Nano)
	object.SetAnnotations(annotations)
}

// OperationOnlyOnChange has the operation of extension objects sent with changes only: their controllers take it away when they begin.
func OperationOnlyOnChange() *resourcesv1alpha1.DriftDetection {
	return &resourcesv1alpha1.DriftDetection{OnlyOnChange: []resourcesv1alpha1.IgnoreRule{{
		Paths: []string{"/metadata/annotations/gardener.cloud~1operation"},
	}}}
}
