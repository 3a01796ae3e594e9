package health

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	widget       = kindOf("example.org/v1", "Widget")
	prometheus   = kindOf("monitoring.coreos.com/v1", "Prometheus")
	alertmanager = kindOf("monitoring.coreos.com/v1", "Alertmanager")
	autoscaler   = kindOf("autoscaling.k8s.io/v1", "VerticalPodAutoscaler")
	certificate  = kindOf("cert.gardener.cloud/v1alpha1", "Certificate")
	issuer       = kindOf("cert.gardener.cloud/v1alpha1", "Issuer")
)

// custom returns the manifest of a custom resource.
func custom(gvk schema.GroupVersionKind, name, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: $NAMESPACE}\nspec: {%s}\n", gvk.GroupVersion(), gvk.Kind, name, spec)
}

// says returns a step in which the controller of a custom resource writes a status.
func says(state string, gvk schema.GroupVersionKind, status string, healthy, progressing want) step {
	return step{
		state: state, healthy: healthy, progressing: progressing,
		act: func(f *fixture) { f.setStatus(gvk, "app", status) },
	}
}

func customStories() []story {
	var stories []story
	for _, gvk := range []schema.GroupVersionKind{prometheus, alertmanager} {
		stories = append(stories, monitoringStory(gvk))
	}
	for _, gvk := range []schema.GroupVersionKind{certificate, issuer} {
		stories = append(stories, certificateStory(gvk))
	}
	return append(stories, story{"VerticalPodAutoscaler", []step{
		{state: "fresh", manifest: custom(autoscaler, "app", ""), healthy: isHealthy, progressing: isRolledOut},
		says("not supported", autoscaler, `{"conditions": [{"type": "ConfigUnsupported", "status": "True", "reason": "None", "message": "no target"}]}`,
			unhealthy("VerticalPodAutoscalerUnhealthy", `condition "ConfigUnsupported" has invalid status True (expected False) due to None: no target`), isRolledOut),
		says("supported", autoscaler, `{"conditions": [{"type": "ConfigUnsupported", "status": "False"}]}`, isHealthy, isRolledOut),
	}}, story{"Widget", []step{
		{state: "fresh", manifest: custom(widget, "app", ""), healthy: isHealthy, progressing: isRolledOut},
		says("not ready yet", widget, `{"conditions": [{"type": "Ready", "status": "False", "reason": "Starting", "message": "wait"}]}`, isHealthy, isRolledOut),
		says("stalled", widget, `{"conditions": [{"type": "Stalled", "status": "True", "reason": "Broken", "message": "no way"}]}`,
			unhealthy("WidgetUnhealthy", "no way"), isRolledOut),
		says("ready", widget, `{"conditions": [{"type": "Ready", "status": "True"}]}`, isHealthy, isRolledOut),
	}})
}

func monitoringStory(gvk schema.GroupVersionKind) story {
	bad, busy := gvk.Kind+"Unhealthy", gvk.Kind+"Progressing"
	// current returns conditions for a generation.
	current := func(generation int, available string) string {
		return fmt.Sprintf(`"conditions": [{"type": "Available", "status": %q, "reason": "R", "message": "m", "observedGeneration": %d},
			{"type": "Reconciled", "status": "True", "observedGeneration": %d}]`, available, generation, generation)
	}
	return story{gvk.Kind, []step{
		{
			state: "fresh", manifest: custom(gvk, "app", "replicas: 2"),
			healthy: unhealthy(bad, `condition "Available" is missing`), progressing: progressing(busy, `condition "Reconciled" is missing`),
		},
		says("coming up", gvk, `{"availableReplicas": 1, "updatedReplicas": 1, `+current(1, "True")+`}`,
			unhealthy(bad, "not enough available replicas (1/2)"), progressing(busy, "1 of 2 replica(s) have been updated")),
		says("ready", gvk, `{"availableReplicas": 2, "updatedReplicas": 2, `+current(1, "True")+`}`, isHealthy, isRolledOut),
		{
			// The new health is known only when the operator has observed the change. Until then, the previous verdict stands.
			state: "changed", manifest: custom(gvk, "app", "replicas: 3"), healthy: isHealthy,
			progressing: progressing(busy, "observed generation outdated (1/2)"),
		},
		says("rolled out", gvk, `{"availableReplicas": 3, "updatedReplicas": 3, `+current(2, "True")+`}`, isHealthy, isRolledOut),
		says("degraded", gvk, `{"availableReplicas": 2, "updatedReplicas": 3, `+current(2, "Degraded")+`}`,
			unhealthy(bad, `condition "Available" has invalid status Degraded (expected True) due to R: m`), isRolledOut),
	}}
}

func certificateStory(gvk schema.GroupVersionKind) story {
	bad := gvk.Kind + "Unhealthy"
	what := map[string]string{"Certificate": "certificate", "Issuer": "issuer"}[gvk.Kind]
	return story{gvk.Kind, []step{
		{
			state: "fresh", manifest: custom(gvk, "app", "a: b"), healthy: unhealthy(bad, what+` state is "" ("Ready" expected)`),
			progressing: progressing(gvk.Kind+"Progressing", "observed generation outdated (0/1)"),
		},
		says("pending", gvk, `{"state": "Pending", "observedGeneration": 1}`,
			unhealthy(bad, what+` state is "Pending" ("Ready" expected)`), isRolledOut),
		says("ready", gvk, `{"state": "Ready", "observedGeneration": 1}`, isHealthy, isRolledOut),
		says("failed", gvk, `{"state": "Error", "observedGeneration": 1}`, unhealthy(bad, what+` state is "Error"`), isRolledOut),
	}}
}

// unstructuredOf returns a definition for a client without the types of definitions.
func unstructuredOf(f *fixture, definition *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	f.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	must(f, err)
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(definitionKind)
	return obj
}
