package health

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	deployment  = kindOf("apps/v1", "Deployment")
	statefulSet = kindOf("apps/v1", "StatefulSet")
)

// nowhere is a node selector for a node that does not exist, as a part of the spec of a Pod.
const nowhere = "nodeSelector: {kubernetes.io/hostname: nowhere}"

// workload returns the manifest of an object with a pod template. The spec and the additional fields of the Pod's spec are in YAML's
// flow style.
func workload(kind, spec, pod string) string {
	return strings.NewReplacer("$KIND", kind, "$SPEC", withComma(spec), "$POD", withComma(pod)).Replace(`
apiVersion: apps/v1
kind: $KIND
metadata: {name: app, namespace: $NAMESPACE}
spec: {$SPECselector: {matchLabels: {app: app}}, template: {metadata: {labels: {app: app}}, spec: {
  $PODterminationGracePeriodSeconds: 0, containers: [{name: main, image: "example.org/image:1"}]}}}
`)
}

func withComma(text string) string {
	if text == "" {
		return ""
	}
	return text + ", "
}

func deploymentStories() []story {
	const replicas, recreated = "replicas: 2", "replicas: 2, strategy: {type: Recreate}"
	scheduled := step{state: "ready", manifest: workload("Deployment", replicas, ""), healthy: isHealthy, progressing: isRolledOut}
	return []story{
		{"Deployment", []step{
			{
				state: "fresh, with no node to run on", manifest: workload("Deployment", replicas, nowhere),
				healthy:     unhealthy("DeploymentUnhealthy", `condition "Available" has invalid status False (expected True) due to MinimumReplicasUnavailable`),
				progressing: progressing("DeploymentProgressing", "is progressing"),
			},
			scheduled,
			{
				state: "rolling, as far as it can", manifest: workload("Deployment", replicas, nowhere),
				healthy: isHealthy, progressing: progressing("DeploymentProgressing", "is progressing"),
			},
			scheduled,
			{state: "scaled to zero", manifest: workload("Deployment", "replicas: 0", ""), healthy: isHealthy, progressing: isRolledOut},
			{
				state: "paused", manifest: workload("Deployment", "replicas: 2, paused: true", ""),
				healthy:     unhealthy("DeploymentUnhealthy", `condition "Progressing" has invalid status Unknown (expected True) due to DeploymentPaused`),
				progressing: progressing("DeploymentProgressing", "Deployment is paused"),
			},
			{
				state: "resumed", manifest: workload("Deployment", replicas, ""), healthy: isHealthy, progressing: isRolledOut,
			},
			{
				state: "deleted by hand and put back", act: (*fixture).deleteDeployment, healthy: isHealthy, progressing: isRolledOut,
				then: (*fixture).wantReadyDeployment,
			},
		}},
		{"Deployment", []step{
			{state: "ready, to be recreated", manifest: workload("Deployment", recreated, ""), healthy: isHealthy, progressing: isRolledOut},
			{
				state:    "degraded, its Pods have no node",
				manifest: workload("Deployment", recreated, nowhere),
				healthy:  unhealthy("DeploymentUnhealthy", "MinimumReplicasUnavailable"), progressing: progressing("DeploymentProgressing", "is progressing"),
			},
		}},
		{"Deployment", []step{{
			state: "past its deadline", manifest: workload("Deployment", "progressDeadlineSeconds: 1", nowhere),
			healthy:     unhealthy("DeploymentUnhealthy", "MinimumReplicasUnavailable"),
			progressing: progressing("DeploymentProgressing", "has timed out progressing"),
		}}},
		{"Deployment", []step{
			scheduled,
			{
				state:       "update past its deadline",
				manifest:    workload("Deployment", replicas+", progressDeadlineSeconds: 1", nowhere),
				healthy:     unhealthy("DeploymentUnhealthy", "ProgressDeadlineExceeded"),
				progressing: progressing("DeploymentProgressing", "has timed out progressing"),
			},
		}},
		{"Deployment", []step{{
			state: "held up by a quota", before: (*fixture).allowNoPods, manifest: workload("Deployment", replicas, ""),
			healthy:     unhealthy("DeploymentUnhealthy", "exceeded quota: none"),
			progressing: progressing("DeploymentProgressing", ""),
		}}},
	}
}

func (f *fixture) deleteDeployment() {
	f.Helper()
	must(f, f.client.Delete(f.ctx, f.named(deployment, "app"), client.PropagationPolicy("Background")))
	f.eventually("the Deployment is restored", func() string {
		return textOf(f.client.Get(f.ctx, f.key("app"), f.named(deployment, "app")))
	})
}

// wantReadyDeployment waits for the status of the Deployment, because the conditions might still be those from before its deletion.
func (f *fixture) wantReadyDeployment() {
	f.Helper()
	f.eventually("the new Deployment is ready", func() string {
		if status := part(f.get(deployment, "app"), "status"); status["readyReplicas"] != int64(2) {
			return "its status is " + sprint(status)
		}
		return ""
	})
	f.eventuallySays(managed, isHealthy, isRolledOut)
}

// allowNoPods makes the API server refuse every Pod of the namespace.
func (f *fixture) allowNoPods() {
	f.Helper()
	quota := &corev1.ResourceQuota{}
	quota.Namespace, quota.Name = f.namespace, "none"
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: *quantity(0)}
	must(f, f.client.Create(f.ctx, quota))
	f.eventually("the quota is enforced", func() string { // the API server observes it a moment later
		probe := &corev1.Pod{}
		probe.Namespace, probe.Name = f.namespace, "probe"
		probe.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.org/image:1"}}
		if err := f.client.Create(f.ctx, probe, client.DryRunAll); !apierrors.IsForbidden(err) {
			return "the answer to a Pod is " + sprint(err)
		}
		return ""
	})
}

func setStories() []story {
	const replicas = `serviceName: none, replicas: 2`
	statefulReady := step{state: "ready", manifest: workload("StatefulSet", replicas, ""), healthy: isHealthy, progressing: isRolledOut}
	daemonReady := step{state: "ready", manifest: workload("DaemonSet", "", ""), healthy: isHealthy, progressing: isRolledOut}
	return []story{
		{"StatefulSet", []step{
			{
				state: "fresh, with no node to run on", manifest: workload("StatefulSet", replicas, nowhere),
				healthy: unhealthy("StatefulSetUnhealthy", "not enough ready replicas (0/2)"), progressing: progressing("StatefulSetProgressing", "1 of 2 replica(s) have been updated"),
			},
		}},
		{"StatefulSet", []step{
			statefulReady,
			{
				state: "update that only some replicas get", healthy: isHealthy, progressing: isRolledOut,
				manifest: workload("StatefulSet", replicas+", updateStrategy: {rollingUpdate: {partition: 1}}", "hostname: new"),
				then:     (*fixture).wantOneUpdated,
			},
			{state: "update of all", manifest: workload("StatefulSet", replicas, "hostname: new"), healthy: isHealthy, progressing: isRolledOut},
			{state: "scaled to zero", manifest: workload("StatefulSet", "serviceName: none, replicas: 0", "hostname: new"), healthy: isHealthy, progressing: isRolledOut},
		}},
		{"StatefulSet", []step{
			statefulReady,
			{
				state: "update without a node to run on", manifest: workload("StatefulSet", replicas, nowhere),
				healthy: unhealthy("StatefulSetUnhealthy", "not enough ready replicas (1/2)"), progressing: progressing("StatefulSetProgressing", "1 of 2 replica(s) have been updated"),
			},
		}},
		{"DaemonSet", []step{
			daemonReady,
			{state: "on no node", manifest: workload("DaemonSet", "", nowhere), healthy: isHealthy, progressing: isRolledOut},
			daemonReady,
			{
				state: "update that a Pod holds up", before: func(f *fixture) { f.holdPod() },
				manifest: workload("DaemonSet", "", "hostname: new"),
				healthy:  isHealthy, progressing: progressing("DaemonSetProgressing", "of 3 replica(s) have been updated"),
			},
			{state: "updated", act: (*fixture).releasePods, healthy: isHealthy, progressing: isRolledOut},
		}},
		{"DaemonSet", []step{{
			state: "fresh, too large for any node", manifest: strings.Replace(workload("DaemonSet", "", ""), "name: main,",
				"name: main, resources: {requests: {memory: 100Ti}},", 1),
			healthy: unhealthy("DaemonSetUnhealthy", "too many unavailable pods found (3/3)"), progressing: isRolledOut,
		}}},
	}
}

func (f *fixture) wantOneUpdated() {
	f.Helper()
	f.eventually("the replicas above the partition are updated", func() string {
		status := part(f.get(statefulSet, "app"), "status")
		if status["updatedReplicas"] == int64(1) && status["readyReplicas"] == int64(2) {
			return ""
		}
		return sprint(status)
	})
}
