package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gathered returns the series of a registry that are not 0, in the form name{values}=number, sorted.
func gathered(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var values []string
			for _, label := range metric.GetLabel() {
				values = append(values, label.GetValue())
			}
			if number := metric.GetGauge().GetValue() + metric.GetCounter().GetValue(); number != 0 {
				lines = append(lines, fmt.Sprintf("%s{%s}=%v", family.GetName(), strings.Join(values, ","), number))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestProgressMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := newProgressMetrics(registry)
	key := Key{Namespace: "n", Name: "a"}
	one, two := Owner{Flow: "shoot", Namespace: "garden-dev", Name: "one"}, Owner{Flow: "shoot", Namespace: "garden-dev", Name: "two"}
	waits := Plan{Waits: []Wait{{Name: "infrastructure", Reason: "the infrastructure is created"}}, Tasks: []Task{{Name: "t"}}}
	written := Result{Decision: Decision{Steps: []Step{{Action: ActionCreate, Key: key}, {Action: ActionUpdate, Key: Key{Name: "not written"}}}}, Written: []Key{key}}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for _, step := range []struct {
		what   string
		owner  Owner
		result Result
		err    error
		at     time.Time
		want   []string
	}{
		{"bundles are written", one, written, nil, at(100), []string{
			"flow_oldest_unsettled_timestamp_seconds{shoot}=100", "flow_owners{shoot,working}=1", "flow_steps_total{Create,shoot}=1",
		}},
		{"then one waits, since it was not settled in between", one, Result{Plan: waits, Decision: Decision{Held: map[Key]string{key: "x"}}}, nil, at(200), []string{
			"flow_bundles{shoot,held}=1", "flow_oldest_unsettled_timestamp_seconds{shoot}=100", "flow_owners{shoot,waiting}=1",
			"flow_steps_total{Create,shoot}=1", "flow_tasks_pending{shoot}=1",
		}},
		{"another one fails", two, Result{}, errors.New("no"), at(300), []string{
			"flow_bundles{shoot,held}=1", "flow_oldest_unsettled_timestamp_seconds{shoot}=100", "flow_owners{shoot,failed}=1", "flow_owners{shoot,waiting}=1",
			"flow_steps_total{Create,shoot}=1", "flow_tasks_pending{shoot}=1",
		}},
		{"the first one is settled", one, Result{}, nil, at(400), []string{
			"flow_oldest_unsettled_timestamp_seconds{shoot}=300", "flow_owners{shoot,failed}=1", "flow_owners{shoot,settled}=1", "flow_steps_total{Create,shoot}=1",
		}},
		{"a rollout that waits is no trouble", two, Result{Plan: Plan{Waits: []Wait{{Name: WaitRollout, Reason: "others are first"}}}}, nil, at(500), []string{
			"flow_owners{shoot,paced}=1", "flow_owners{shoot,settled}=1", "flow_steps_total{Create,shoot}=1",
		}},
		{"the second one is deleted", two, Result{Plan: Plan{Deleting: true}}, nil, at(600), []string{
			"flow_owners{shoot,settled}=1", "flow_steps_total{Create,shoot}=1",
		}},
	} {
		p.observe(t.Context(), step.owner, step.result, step.err, step.at)
		if got := gathered(t, registry); !slices.Equal(got, step.want) {
			t.Errorf("%s:\n%s\nwant\n%s", step.what, strings.Join(got, "\n"), strings.Join(step.want, "\n"))
		}
	}
	p.forget(ownerKey{"shoot", "garden-dev", "one"})
	if got := gathered(t, registry); len(got) != 1 {
		t.Errorf("of a Shoot that is not ours any more: %v", got)
	}
}

func TestStateOf(t *testing.T) {
	key := Key{Namespace: "n", Name: "a"}
	problem := Decision{Problems: map[Key]string{key: "is refused", {Namespace: "n", Name: "b"}: "is too large"}}
	paced := Wait{Name: WaitRollout, Reason: "others are first"}
	for _, test := range []struct {
		result Result
		err    error
		state  State
		reason string
	}{
		{Result{}, nil, StateSettled, ""},
		{Result{Decision: problem}, nil, StateFailed, "n/a: is refused"},
		{Result{}, errors.New("the API server does not answer"), StateFailed, "the API server does not answer"},
		{Result{Plan: Plan{Waits: []Wait{paced}}}, nil, StatePaced, "others are first"},
		{Result{Plan: Plan{Waits: []Wait{paced, {Name: "hold", Reason: "the Seed is not ready"}}}}, nil, StateWaiting, "the Seed is not ready"},
		{Result{Decision: Decision{Pending: map[Key]string{key: "is applied"}}}, nil, StateWorking, "n/a: is applied"},
		{Result{Decision: Decision{Steps: []Step{{Key: key}}}}, nil, StateWorking, "ManagedResources were written"},
	} {
		if state, reason := stateOf(test.result, test.err); state != test.state || reason != test.reason {
			t.Errorf("%+v: %s %q, want %s %q", test.result, state, reason, test.state, test.reason)
		}
	}
}
