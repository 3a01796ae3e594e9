package health

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	isTrue  = resourcesv1alpha1.ConditionTrue
	isFalse = resourcesv1alpha1.ConditionFalse
	unknown = resourcesv1alpha1.ConditionUnknown
)

// eventuallyAll waits until all conditions match at the same time.
func (f *fixture) eventuallyAll(name string, wants map[resourcesv1alpha1.ConditionType]want) {
	f.Helper()
	f.eventually("the conditions of "+name+" are "+sprint(wants), func() string {
		mr := f.read(name)
		var objections []string
		for conditionType, want := range wants {
			if objection := want.objection(conditionOf(mr, conditionType)); objection != "" {
				objections = append(objections, objection)
			}
		}
		return strings.Join(objections, "; ")
	})
}

func all(applied, healthy, progressing, ready want) map[resourcesv1alpha1.ConditionType]want {
	return map[resourcesv1alpha1.ConditionType]want{
		resourcesv1alpha1.ResourcesApplied: applied, resourcesv1alpha1.ResourcesHealthy: healthy,
		resourcesv1alpha1.ResourcesProgressing: progressing, resourcesv1alpha1.Ready: ready,
	}
}

// TestLifecycle creates, changes and deletes ManagedResources.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]func(*fixture){
		"created": (*fixture).createAndWatch, "ignored": (*fixture).ignoreAndResume, "deleted": (*fixture).deleteSlowly,
		"moved to another class": (*fixture).moveToOtherClass, "waited for": (*fixture).waitWithKubectl,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(f.in(t))
		})
	}
}

// startDelay is how long new objects may be unhealthy until this is reported.
const startDelay = 2 * time.Second

func (f *fixture) createAndWatch() {
	h := f.follow(managed)
	f.manage(managed, workload("Deployment", "replicas: 2", ""))
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.eventually("the history is complete", func() string {
		if statuses := h.statuses(resourcesv1alpha1.Ready); !strings.HasSuffix(statuses, string(isTrue)) {
			return "Ready was " + statuses
		}
		return ""
	})
	healthy := "none Unknown True"
	if h.until(resourcesv1alpha1.ResourcesHealthy, isFalse) > startDelay { // on a busy machine, the Pods start late
		healthy = "none Unknown False True"
	}
	for conditionType, expected := range map[resourcesv1alpha1.ConditionType]string{
		resourcesv1alpha1.ResourcesApplied: "none Progressing True", resourcesv1alpha1.ResourcesHealthy: healthy,
		resourcesv1alpha1.ResourcesProgressing: "none Unknown True False", resourcesv1alpha1.Ready: healthy,
	} {
		if got := h.statuses(conditionType); !isExcerpt(got, expected) {
			f.Errorf("%s was %s, want %s", conditionType, got, expected)
		}
	}
	for _, version := range h.all() {
		conditions := make([]resourcesv1alpha1.Condition, 0, len(version.conditions))
		for _, condition := range version.conditions {
			conditions = append(conditions, condition)
		}
		ready := version.conditions[resourcesv1alpha1.Ready]
		if summed := resourcesv1alpha1.ConditionOf(resourcesv1alpha1.SetReady(conditions, time.Now()), resourcesv1alpha1.Ready); len(conditions) > 0 &&
			(summed.Status != ready.Status || summed.Reason != ready.Reason || summed.Message != ready.Message) {
			f.Errorf("Ready does not match the other conditions: %+v", version.conditions)
		}
	}
	if objection := h.objectionToTimes(); objection != "" {
		f.Error(objection)
	}
	f.Logf("the history:\n%s", h)
}

// isExcerpt reports whether a series of statuses is a part of another one that may leave out statuses, except the last. A slow
// resource-manager might miss short-lived statuses.
func isExcerpt(got, whole string) bool {
	expected := strings.Fields(whole)
	for _, status := range strings.Fields(got) {
		i := slices.Index(expected, status)
		if i < 0 {
			return false
		}
		expected = expected[i+1:]
	}
	return len(expected) == 0
}

func (f *fixture) ignoreAndResume() {
	f.manage(managed, serviceWith("LoadBalancer", ""))
	waits := unhealthy("ServiceUnhealthy", "service is missing ingress status")
	f.eventuallySays(managed, waits, isRolledOut)
	f.change(managed, `{"metadata": {"annotations": {"resources.gardener.cloud/ignore": "true"}}}`)
	const reason, text = resourcesv1alpha1.ReasonManagedResourceIgnored, "ManagedResource is marked to be ignored."
	f.eventuallyAll(managed, all(want{isTrue, reason, text}, want{isTrue, reason, text}, want{isFalse, reason, text}, want{isTrue, reason, text}))
	f.change(managed, `{"metadata": {"annotations": {"resources.gardener.cloud/ignore": null}}}`)
	f.eventuallyAll(managed, all(want{isTrue, resourcesv1alpha1.ReasonApplySucceeded, ""}, waits, isRolledOut, waits))
}

func (f *fixture) deleteSlowly() {
	f.manage(managed, strings.Replace(configMap, "namespace:", "finalizers: [example.org/held], namespace:", 1))
	f.eventuallySays(managed, isHealthy, isRolledOut)
	must(f, f.client.Delete(f.ctx, f.read(managed)))
	const reason, text = resourcesv1alpha1.ReasonDeletionPending, "The resources are currently being deleted."
	const pending = "Deletion is still pending (1): v1/ConfigMap/"
	f.eventuallyAll(managed, all(want{resourcesv1alpha1.ConditionProgressing, reason, pending}, want{isFalse, reason, text},
		want{isTrue, reason, text}, want{unknown, reason, pending}))
	f.patch(kindOf("v1", "ConfigMap"), "app", `{"metadata": {"finalizers": null}}`)
	f.eventually("the ManagedResource no longer exists", func() string {
		err := f.client.Get(f.ctx, f.key(managed), &resourcesv1alpha1.ManagedResource{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return "it still exists; error: " + textOf(err)
	})
}

func (f *fixture) moveToOtherClass() {
	other := f.startManager()
	f.manage(managed, strings.Replace(configMap, "namespace:", "finalizers: [example.org/held], namespace:", 1))
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.change(managed, `{"spec": {"class": "`+other.class+`"}}`)
	const reason, text = resourcesv1alpha1.ReasonDeletionPending, "The resources are currently being deleted."
	f.eventuallySays(managed, want{isFalse, reason, text}, want{isTrue, reason, text})
	f.patch(kindOf("v1", "ConfigMap"), "app", `{"metadata": {"finalizers": null}}`)
	f.eventuallyAll(managed, all(want{isTrue, resourcesv1alpha1.ReasonApplySucceeded, ""}, isHealthy, isRolledOut, want{status: isTrue}))
	if finalizers := f.read(managed).Finalizers; len(finalizers) != 1 || finalizers[0] != resourcesv1alpha1.FinalizerOf(other.class) {
		f.Errorf("the finalizers are %v, want the one of class %s", finalizers, other.class)
	}
	// The other resource-manager observes the next change.
	f.patch(kindOf("v1", "ConfigMap"), "app", `{"metadata": {"labels": {"resources.gardener.cloud/managed-by": null}}}`)
	f.eventuallySays(managed, isHealthy, isRolledOut)
}

// waitWithKubectl waits with the real kubectl, started before the condition holds.
func (f *fixture) waitWithKubectl() {
	root, err := controlplane.RepositoryRoot()
	must(f, err)
	f.manage(managed, serviceWith("LoadBalancer", ""))
	f.eventuallySays(managed, unhealthy("ServiceUnhealthy", ""), isRolledOut)
	type result struct {
		condition, output string
		err               error
	}
	conditions := []string{"ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing=False", "Ready"}
	results := make(chan result, len(conditions))
	ctx, cancel := context.WithTimeout(f.ctx, kit.WaitTimeout)
	defer cancel()
	for _, condition := range conditions {
		command := exec.CommandContext(ctx, filepath.Join(root, "bin", "kubectl"), "--kubeconfig", filepath.Join(f.controlPlane.Dir(), "kubeconfig"),
			"--namespace", f.namespace, "wait", "managedresource/"+managed, "--for=condition="+condition, "--timeout=50s")
		go func() {
			output, err := command.CombinedOutput()
			results <- result{condition, string(output), err}
		}()
	}
	f.setStatus(service, "app", `{"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}`)
	for range conditions {
		if got := <-results; got.err != nil || !strings.Contains(got.output, "condition met") {
			f.Errorf("kubectl wait --for=condition=%s: %v: %s", got.condition, got.err, got.output)
		}
	}
}
