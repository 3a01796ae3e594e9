package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestProgress(t *testing.T) {
	plan := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1", "a")}}
	set := func(name string, kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus, reason, message string) func(Live) {
		return func(l Live) { condition(l.ManagedResources[named(name)], kind, status, reason, message) }
	}
	const applied, healthy, progressing = resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing
	for name, test := range map[string]struct {
		live        Live
		disturb     []func(Live)
		waits       []Wait
		percent     int32
		state       corev1beta1.LastOperationState
		description string
		codes       string
	}{
		"start":    {live: nothingLive(), state: "Processing", description: "Starting Reconciliation"},
		"finished": {live: emitted(t, plan), percent: 100, state: "Succeeded", description: "Reconciliation finished"},
		"half": {live: emitted(t, plan), disturb: []func(Live){set("b", applied, "Progressing", "DependencyNotReady", "x")},
			percent: 50, state: "Processing", description: "b"},
		"rolling out is no error": {live: emitted(t, plan), disturb: []func(Live){
			set("b", healthy, "False", "DeploymentUnhealthy", "x"), set("b", progressing, "True", "DeploymentProgressing", "x")},
			percent: 50, state: "Processing", description: "b"},
		"a stuck rollout is": {live: emitted(t, plan), disturb: []func(Live){
			set("b", healthy, "False", resourcesv1alpha1.ReasonRolloutStuck, "too long"), set("b", progressing, "True", "DeploymentProgressing", "x")},
			percent: 50, state: "Error", description: "Too long. Operation will be retried.", codes: "[]"},
		"an error without a code": {live: emitted(t, plan), disturb: []func(Live){set("b", applied, "False", "ApplyFailed", "no connection")},
			percent: 50, state: "Error", description: "No connection. Operation will be retried.", codes: "[]"},
		"an error that stays": {live: emitted(t, plan), disturb: []func(Live){set("b", applied, "False", "ApplyFailed", `Deployment "x" is invalid`)},
			percent: 50, state: "Failed", description: `Deployment "x" is invalid.`, codes: "[ERR_CONFIGURATION_PROBLEM]"},
		"the text of a probe names no code": {live: emitted(t, plan), disturb: []func(Live){set("b", healthy, "False", "DeploymentUnhealthy", "probe failed with status 403")},
			percent: 50, state: "Error", description: "Probe failed with status 403. Operation will be retried.", codes: "[]"},
		"an unhealthy extension that names a code": {live: emitted(t, plan), disturb: []func(Live){set("b", healthy, "False", "InfrastructureUnhealthy", "[ERR_INFRA_UNAUTHORIZED] no")},
			percent: 50, state: "Failed", description: "[ERR_INFRA_UNAUTHORIZED] no.", codes: "[ERR_INFRA_UNAUTHORIZED]"},
		"a rate limit of a cloud, which passes": {live: emitted(t, plan), disturb: []func(Live){set("b", healthy, "False", "InfrastructureUnhealthy", "[ERR_INFRA_RATE_LIMITS_EXCEEDED] slow down")},
			percent: 50, state: "Error", description: "[ERR_INFRA_RATE_LIMITS_EXCEEDED] slow down. Operation will be retried.", codes: "[ERR_INFRA_RATE_LIMITS_EXCEEDED]"},
		"a resource-manager that may not write": {live: emitted(t, plan), disturb: []func(Live){set("b", applied, "False", "ApplyFailed", "Unauthorized")},
			percent: 50, state: "Error", description: "Unauthorized. Operation will be retried.", codes: "[]"},
		"held":                      {live: emitted(t, plan), waits: []Wait{{Name: "w", Holds: []Key{named("b")}}}, percent: 50, state: "Processing", description: "b"},
		"a wait that holds nothing": {live: emitted(t, plan), waits: []Wait{{Name: "endpoint"}}, percent: 66, state: "Processing", description: "endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, disturb := range test.disturb {
				disturb(test.live)
			}
			p := plan
			p.Waits = test.waits
			got := Progress(Operation{Name: "Reconciliation"}, owner, Result{Plan: p, Decision: decide(t, p, test.live), Live: test.live}, start)
			last := got.LastOperation
			if last.Progress != test.percent || last.State != test.state || last.Description != test.description {
				t.Errorf("%d %s %q, want %d %s %q", last.Progress, last.State, last.Description, test.percent, test.state, test.description)
			}
			if test.codes != "" && (len(got.LastErrors) != 1 || fmt.Sprint(got.LastErrors[0].Codes) != test.codes) {
				t.Errorf("errors %+v, want codes %s", got.LastErrors, test.codes)
			}
		})
	}
}

// TestErrorsThatDoNotCount checks that a final error of a bundle that is being replaced or deleted does not end the operation.
func TestErrorsThatDoNotCount(t *testing.T) {
	before, after := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1")}}, Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "2")}}
	gone := Plan{Bundles: after.Bundles[:1], Tombstones: []Tombstone{{Key: named("b")}}}
	ends := Plan{Deleting: true, Bundles: after.Bundles[:1], Waits: []Wait{{Name: "order", Holds: []Key{named("b")}}}}
	deleted := func(l Live) {
		l.ManagedResources[named("b")].DeletionTimestamp = &metav1.Time{Time: start.Add(-time.Minute)}
	}
	since := func(at time.Time) func(Live) {
		return func(l Live) {
			for i := range l.ManagedResources[named("b")].Status.Conditions {
				l.ManagedResources[named("b")].Status.Conditions[i].LastUpdateTime = metav1.NewTime(at)
			}
		}
	}
	for name, test := range map[string]struct {
		plan    Plan
		kind    resourcesv1alpha1.ConditionType
		disturb []func(Live)
		counts  bool
	}{
		"the same revision":                       {before, resourcesv1alpha1.ResourcesHealthy, nil, true},
		"another revision":                        {after, resourcesv1alpha1.ResourcesHealthy, nil, false},
		"not wanted any more":                     {gone, resourcesv1alpha1.ResourcesHealthy, nil, false},
		"being deleted, an error from before":     {gone, resourcesv1alpha1.ResourcesHealthy, []func(Live){deleted, since(start.Add(-time.Hour))}, false},
		"being deleted, an error of that":         {gone, resourcesv1alpha1.ResourcesHealthy, []func(Live){deleted, since(start)}, true},
		"being deleted, not possible":             {gone, resourcesv1alpha1.ResourcesApplied, []func(Live){deleted, since(start.Add(-time.Hour))}, true},
		"the owner is deleted, and this is later": {ends, resourcesv1alpha1.ResourcesHealthy, nil, false},
		"held, while the owner is not deleted":    {Plan{Bundles: before.Bundles, Waits: ends.Waits}, resourcesv1alpha1.ResourcesHealthy, nil, true},
	} {
		live := emitted(t, before)
		condition(live.ManagedResources[named("b")], test.kind, "False", "Failed", "[ERR_CONFIGURATION_PROBLEM] it is invalid")
		for _, disturb := range test.disturb {
			disturb(live)
		}
		got := Progress(Operation{Name: "x"}, owner, Result{Plan: test.plan, Decision: decide(t, test.plan, live), Live: live}, start)
		if (len(got.LastErrors) > 0) != test.counts || (got.LastOperation.State == corev1beta1.LastOperationStateFailed) != test.counts {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestProgressKeepsTimes(t *testing.T) {
	plan := Plan{Bundles: []Bundle{bundle("a", "1")}}
	live := emitted(t, plan)
	condition(live.ManagedResources[named("a")], resourcesv1alpha1.ResourcesApplied, "False", "ApplyFailed", "no connection")
	result := Result{Plan: plan, Decision: decide(t, plan, live), Live: live}
	first := Progress(Operation{Name: "x"}, owner, result, start)
	again := Progress(Operation{Name: "x", Before: first}, owner, result, start.Add(time.Hour))
	if again.LastOperation != first.LastOperation || !again.LastErrors[0].LastUpdateTime.Equal(first.LastErrors[0].LastUpdateTime) {
		t.Errorf("%+v, then %+v", first, again)
	}
}

func TestCodesIn(t *testing.T) {
	for text, want := range map[string][]corev1beta1.ErrorCode{
		"AuthFailure: credentials":                             {corev1beta1.ErrorInfraUnauthenticated},
		"status 403 from the cloud":                            {corev1beta1.ErrorInfraUnauthorized},
		"InstanceLimitExceeded":                                {corev1beta1.ErrorInfraQuotaExceeded},
		"SubnetLimitExceeded":                                  {corev1beta1.ErrorInfraQuotaExceeded},
		"RequestLimitExceeded":                                 {corev1beta1.ErrorInfraRateLimitsExceeded},
		"DependencyViolation: in use":                          {corev1beta1.ErrorInfraDependencies},
		"the zone is out of capacity":                          {corev1beta1.ErrorInfraResourcesDepleted},
		`Service "x" is invalid: spec.port`:                    {corev1beta1.ErrorConfigurationProblem},
		"connection refused":                                   nil,
		"[ERR_B, ERR_INFRA_QUOTA_EXCEEDED] AuthFailure; ERR_B": {"ERR_B", corev1beta1.ErrorInfraQuotaExceeded},
		"the object has the generation 14032":                  nil,
	} {
		if got := CodesIn(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestCodesOfConditionsAreTakenAsTheyAre(t *testing.T) {
	plan := Plan{Bundles: []Bundle{bundle("a", "1")}}
	live := emitted(t, plan)
	mr := live.ManagedResources[named("a")]
	condition(mr, resourcesv1alpha1.ResourcesApplied, "False", "ApplyFailed", "it is invalid")
	mr.Status.Conditions[0].Codes = []string{"ERR_OF_AN_EXTENSION"}
	if got := fmt.Sprint(codesOf(mr)); !strings.Contains(got, "ERR_OF_AN_EXTENSION") || strings.Contains(got, "CONFIGURATION") {
		t.Errorf("codes %s", got)
	}
}

func TestReportsThatCanWait(t *testing.T) {
	plan := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1"), bundle("c", "1")}}
	operation := Operation{Name: "Reconciliation"}
	step := func(done int) Report {
		live := emitted(t, plan)
		for _, name := range []string{"a", "b", "c"}[done:] {
			live.ManagedResources[named(name)].Generation++
		}
		return Progress(operation, owner, Result{Plan: plan, Live: live, Decision: decide(t, plan, live)}, start)
	}
	failed := step(1)
	failed.LastErrors = append(failed.LastErrors, Progress(operation, owner, Result{
		Plan: plan, Live: nothingLive(), Decision: Decision{Problems: map[Key]string{named("a"): "no"}},
	}, start).LastErrors...)
	for name, test := range map[string]struct {
		before, after Report
		now           time.Time
		want          time.Duration
	}{
		"the first one":             {Report{}, step(0), start, 0},
		"a step forward":            {step(1), step(2), start.Add(time.Second), progressEvery - time.Second},
		"a step forward, later":     {step(1), step(2), start.Add(progressEvery), 0},
		"the end":                   {step(2), step(3), start.Add(time.Second), 0},
		"a new beginning":           {step(3), step(2), start.Add(time.Second), 0},
		"an error":                  {step(1), failed, start.Add(time.Second), 0},
		"an error that is gone":     {failed, step(1), start.Add(time.Second), 0},
		"another kind of operation": {Report{LastOperation: step(1).LastOperation}, deletionOf(step(1)), start, 0},
	} {
		if got := test.after.Pause(test.before, test.now); got != test.want {
			t.Errorf("%s: waits %v, want %v", name, got, test.want)
		}
	}
}

func deletionOf(report Report) Report {
	report.LastOperation.Type = "Delete"
	return report
}

// TestUnhealthyCausesAreNamed checks that a program has a moment to start before it counts as an error, and that one that
// does not start is named as the cause while its rollout still has time.
func TestUnhealthyCausesAreNamed(t *testing.T) {
	plan := Plan{Bundles: []Bundle{bundle("etcd", "1"), bundle("server", "1", "etcd")}}
	for name, test := range map[string]struct {
		progressing resourcesv1alpha1.ConditionStatus
		since       time.Duration
		state       corev1beta1.LastOperationState
		description string
		next        time.Duration
	}{
		"just started":                     {"False", 2 * time.Second, "Processing", "etcd", healthGrace - 2*time.Second},
		"not ready for a moment":           {"False", healthGrace, "Processing", "etcd, etcd is not healthy: no Pod is ready", errorGrace - healthGrace},
		"not started":                      {"False", errorGrace, "Error", "No Pod is ready. Operation will be retried.", 0},
		"just started, is rolled out":      {"True", 2 * time.Second, "Processing", "etcd", healthGrace - 2*time.Second},
		"not started, is still rolled out": {"True", errorGrace, "Processing", "etcd, etcd is not healthy: no Pod is ready", 0},
	} {
		live := emitted(t, plan)
		condition(live.ManagedResources[named("etcd")], resourcesv1alpha1.ResourcesHealthy, "False", "DeploymentUnhealthy", "no Pod is ready.\n\nEvents")
		condition(live.ManagedResources[named("etcd")], resourcesv1alpha1.ResourcesProgressing, test.progressing, "x", "x")
		if test.state == "Error" {
			condition(live.ManagedResources[named("etcd")], resourcesv1alpha1.ResourcesHealthy, "False", "DeploymentUnhealthy", "no Pod is ready")
		}
		conditions := live.ManagedResources[named("etcd")].Status.Conditions
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.NewTime(start.Add(-test.since))
		}
		result := Result{Plan: plan, Decision: decide(t, plan, live), Live: live}
		last := Progress(Operation{Name: "Reconciliation"}, owner, result, start).LastOperation
		if last.State != test.state || last.Description != test.description {
			t.Errorf("%s: %s %q, want %s %q", name, last.State, last.Description, test.state, test.description)
		}
		if next := causesChangeAt(owner, live, start); next.IsZero() != (test.next == 0) || test.next > 0 && !next.Equal(start.Add(test.next)) {
			t.Errorf("%s: changes at %s", name, next)
		}
	}
}

// TestWrongIsNotLate checks that an error of the configuration is not reported as if it only took too long.
func TestWrongIsNotLate(t *testing.T) {
	for code, want := range map[corev1beta1.ErrorCode]string{
		"": "Not in time: x", corev1beta1.ErrorInfraDependencies: "Not in time: x",
		corev1beta1.ErrorConfigurationProblem: "X", corev1beta1.ErrorRetryableConfigurationProblem: "X",
	} {
		errs := Result{Plan: Plan{Waits: []Wait{{Name: "w", Reason: "x", Deadline: start, Code: code}}}}.errors(owner, start)
		if len(errs) != 1 || errs[0].Description != want || code != "" && errs[0].Codes[0] != code {
			t.Errorf("%q: %+v", code, errs)
		}
	}
}

func TestUpperFirst(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "no Pod is ready": "No Pod is ready", "ärger": "Ärger", "spec.extensions[2]: not supported": "spec.extensions[2]: not supported",
		"extensions[2]: not supported": "extensions[2]: not supported", "done.": "Done.", "\xff": "\uFFFD",
	} {
		if got := UpperFirst(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
