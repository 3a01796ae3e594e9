package health

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

var (
	manyDeployments = flag.Int("health.deployments", 10, "the number of Deployments that TestRollingUpdateDoesNotFlap updates at once")
	manyReplicas    = flag.Int("health.replicas", 5, "the number of replicas of each workload")
)

// TestRollingUpdateDoesNotFlap updates many workloads at once and checks every version of the conditions during the update.
func TestRollingUpdateDoesNotFlap(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, kinds := range map[string][]string{"deployments": {"Deployment"}, "sets": {"StatefulSet", "DaemonSet"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := f.in(t)
			f.manage(managed, f.fleet(kinds, "one")...)
			f.eventuallySays(managed, isHealthy, isRolledOut)
			f.eventuallyUpdated(kinds, "one")

			h := f.follow(managed)
			f.update(managed, f.fleet(kinds, "two")...)
			f.eventuallyUpdated(kinds, "two")
			f.eventuallySays(managed, isHealthy, isRolledOut)
			h.forgetNothing(f)
			if got := h.statuses(resourcesv1alpha1.ResourcesHealthy); got != "True" && h.impatient() {
				t.Errorf("ResourcesHealthy was %s", got)
			}
			if got := h.statuses(resourcesv1alpha1.ResourcesProgressing); got != "False True False" {
				t.Errorf("ResourcesProgressing was %s", got)
			}
			if objection := h.objectionToTimes(); objection != "" {
				t.Error(objection)
			}
			t.Logf("the history of the update:\n%s", h)
		})
	}
}

// impatient reports whether objects were reported as unhealthy before the grace period of the rollout (docs/health-checks.md) was over.
// On a busy machine, Pods may be missing for longer, which has to be reported.
func (h *history) impatient() bool {
	const timeout = 29 * time.Second // of 30, because times of conditions are whole seconds
	var began time.Time
	for _, condition := range h.changes(resourcesv1alpha1.ResourcesProgressing) {
		if condition.Status == resourcesv1alpha1.ConditionTrue {
			began = condition.LastTransitionTime.Time
		}
	}
	for _, condition := range h.changes(resourcesv1alpha1.ResourcesHealthy) {
		if condition.Status != resourcesv1alpha1.ConditionTrue && condition.LastTransitionTime.Sub(began) < timeout {
			return true
		}
	}
	return false
}

// forgetNothing waits until the history has the last version.
func (h *history) forgetNothing(f *fixture) {
	f.Helper()
	f.eventually("the history is complete", func() string {
		versions := h.all()
		if len(versions) == 0 {
			return "the history is empty"
		}
		last := versions[len(versions)-1].conditions[resourcesv1alpha1.ResourcesProgressing]
		return isRolledOut.objection(last)
	})
}

// fleet returns manifests of many workloads of the given kinds, in a version.
func (f *fixture) fleet(kinds []string, version string) []string {
	documents := make([]string, 0, *manyDeployments)
	for i := range *manyDeployments {
		kind := kinds[i%len(kinds)]
		spec := fmt.Sprintf("replicas: %d, minReadySeconds: 1", *manyReplicas)
		switch kind {
		case "DaemonSet":
			spec = "minReadySeconds: 1"
		case "StatefulSet":
			spec += ", serviceName: none, podManagementPolicy: Parallel"
		}
		document := workload(kind, spec, "hostname: "+version)
		documents = append(documents, strings.NewReplacer("name: app,", "name: "+fleetName(i)+",", "app: app", "app: "+fleetName(i)).Replace(document))
	}
	return documents
}

func fleetName(i int) string { return fmt.Sprintf("app-%d", i) }

// eventuallyUpdated waits until all workloads have all replicas in a version, according to their own status.
func (f *fixture) eventuallyUpdated(kinds []string, version string) {
	f.Helper()
	for i := range *manyDeployments {
		gvk := kindOf("apps/v1", kinds[i%len(kinds)])
		kit.EventuallyWithin(f, 5*time.Minute, fmt.Sprintf("%s %d has version %s", gvk.Kind, i, version), func() string {
			obj := f.get(gvk, fleetName(i))
			status := part(obj, "status")
			wanted, updated := part(obj, "spec")["replicas"], status["updatedReplicas"]
			if gvk.Kind == "DaemonSet" {
				wanted, updated = status["desiredNumberScheduled"], status["updatedNumberScheduled"]
			}
			if status["observedGeneration"] == obj.GetGeneration() && wanted == updated && wanted != nil {
				return ""
			}
			return sprint(status)
		})
	}
}

// TestStuckRollout makes a rollout take longer than allowed.
func TestStuckRollout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(r *inprocess.ResourceManager) { r.ProgressingThreshold = 3 * time.Second })
	h := f.follow(managed)
	f.manage(managed, workload("Deployment", "replicas: 1", ""))
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.update(managed, workload("Deployment", "replicas: 1", nowhere))
	mr := f.eventuallySays(managed, unhealthy(resourcesv1alpha1.ReasonRolloutStuck, "The rollout takes longer than 3s: Deployment"),
		progressing("DeploymentProgressing", ""))
	rolling, stuck := conditionOf(mr, resourcesv1alpha1.ResourcesProgressing), conditionOf(mr, resourcesv1alpha1.ResourcesHealthy)
	if took := stuck.LastTransitionTime.Sub(rolling.LastTransitionTime.Time); took < 3*time.Second {
		t.Errorf("a rollout counted as stuck after %s, want at least 3s", took)
	}
	f.update(managed, workload("Deployment", "replicas: 1", "hostname: new"))
	f.eventuallySays(managed, isHealthy, isRolledOut)
	t.Logf("the history:\n%s", h)
}
