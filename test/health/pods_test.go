package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

func quantity(value int64) *resource.Quantity { return resource.NewQuantity(value, resource.DecimalSI) }

func sprint(value any) string { return fmt.Sprint(value) }

const (
	podSpec = `terminationGracePeriodSeconds: 0, containers: [{name: main, image: "example.org/image:1"}]`
	podOf   = `
apiVersion: v1
kind: Pod
metadata: {name: app, namespace: $NAMESPACE}
spec: {$POD}
`
	replicationController = `
apiVersion: v1
kind: ReplicationController
metadata: {name: app, namespace: $NAMESPACE}
spec: {replicas: 2, selector: {app: app}, template: {metadata: {labels: {app: app}}, spec: {$POD}}}
`
	job = `
apiVersion: batch/v1
kind: Job
metadata: {name: app, namespace: $NAMESPACE}
spec: {$SPEC, template: {spec: {$POD, restartPolicy: Never}}}
`
)

func jobOf(spec, pod string) string {
	return strings.NewReplacer("$SPEC", spec, "$POD", pod).Replace(job)
}

func podStories() []story {
	const unscheduled = podSpec + ", " + nowhere
	return []story{
		{"ReplicaSet", []step{
			{state: "ready", manifest: workload("ReplicaSet", "replicas: 2", ""), healthy: isHealthy, progressing: isRolledOut},
			{state: "scaled to zero", manifest: workload("ReplicaSet", "replicas: 0", ""), healthy: isHealthy, progressing: isRolledOut},
		}},
		{"ReplicaSet", []step{{
			state: "fresh, with no node to run on", manifest: workload("ReplicaSet", "replicas: 2", nowhere),
			healthy: unhealthy("ReplicaSetUnhealthy", "ReplicaSet does not have minimum availability"), progressing: isRolledOut,
		}}},
		{"ReplicationController", []step{
			{state: "ready", manifest: strings.Replace(replicationController, "$POD", podSpec, 1), healthy: isHealthy, progressing: isRolledOut},
			{
				state: "with too few Pods", before: (*fixture).allowNoPods,
				manifest: strings.NewReplacer("replicas: 2", "replicas: 3", "$POD", podSpec).Replace(replicationController),
				healthy:  unhealthy("ReplicationControllerUnhealthy", "ReplicationController does not have minimum availability"), progressing: isRolledOut,
			},
		}},
		{"Job", []step{{
			state: "complete", manifest: jobOf("completions: 2", podSpec), healthy: isHealthy, progressing: isRolledOut,
			then: (*fixture).wantCompleteJob,
		}}},
		{"Job", []step{{
			state: "failed, as it took too long", manifest: jobOf("activeDeadlineSeconds: 1", unscheduled),
			healthy:     unhealthy("JobUnhealthy", `condition "Failed" has invalid status True (expected False) due to DeadlineExceeded`),
			progressing: isRolledOut,
		}}},
		{"Pod", []step{{
			state: "pending", manifest: strings.Replace(podOf, "$POD", unscheduled, 1),
			healthy: unhealthy("PodUnhealthy", `pod is in invalid phase "Pending" (expected one of ["Running" "Succeeded"])`), progressing: isRolledOut,
		}}},
		{"Pod", []step{{state: "running", manifest: strings.Replace(podOf, "$POD", podSpec, 1), healthy: isHealthy, progressing: isRolledOut}}},
	}
}

func (f *fixture) wantCompleteJob() {
	f.Helper()
	f.eventually("the Job is complete", func() string {
		status := part(f.get(kindOf("batch/v1", "Job"), "app"), "status")
		if status["succeeded"] == int64(2) && status["completionTime"] != nil {
			return ""
		}
		return sprint(status)
	})
	f.eventuallySays(managed, isHealthy, isRolledOut)
}
