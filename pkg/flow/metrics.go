package flow

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// State is what the last emission of an owner left to do.
type State string

// The states, from the worst. An emission has the first that applies.
const (
	// StateFailed has errors, or bundles that cannot reach the state that the plan wants.
	StateFailed State = "failed"
	// StateWaiting waits for a condition, such as an extension or an object that does not exist.
	StateWaiting State = "waiting"
	// StatePaced waits for its place in a rollout.
	StatePaced State = "paced"
	// StateWorking has written bundles, or waits for the resource-manager.
	StateWorking State = "working"
	// StateSettled has nothing to do.
	StateSettled State = "settled"
)

// states are all states, in the order of their declaration.
var states = []State{StateFailed, StateWaiting, StatePaced, StateWorking, StateSettled}

// progress is shared by all emitters of a program, like the metrics of controllers in controller-runtime.
var progress = newProgressMetrics(metrics.Registry)

// progressMetrics counts what flows leave to do. It keeps the last observation of each owner.
type progressMetrics struct {
	owners, bundles, tasks, oldest *prometheus.GaugeVec
	steps                          *prometheus.CounterVec

	mu   sync.Mutex
	last map[ownerKey]observation
}

// ownerKey identifies an owner while it exists.
type ownerKey struct{ flow, namespace, name string }

// observation is the outcome of the last emission of an owner.
type observation struct {
	state State
	// since is when the owner was last settled or paced; zero if it is.
	since                          time.Time
	held, pending, problems, tasks int
}

func newProgressMetrics(registry prometheus.Registerer) *progressMetrics {
	p := &progressMetrics{
		owners: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "flow", Name: "owners",
			Help: "Owners of control planes by what their last pass left to do. state: failed, waiting, paced, working, settled.",
		}, []string{"flow", "state"}),
		bundles: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "flow", Name: "bundles",
			Help: "ManagedResources that keep their revision, wait for a watch, or cannot be written. state: held, pending, problem.",
		}, []string{"flow", "state"}),
		tasks: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "flow", Name: "tasks_pending", Help: "Tasks that are due and not done.",
		}, []string{"flow"}),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "flow", Name: "oldest_unsettled_timestamp_seconds",
			Help: "Since when the owner that has been failing, waiting or working for the longest time does so, as a Unix time in seconds; 0 if there is none.",
		}, []string{"flow"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "flow", Name: "steps_total",
			Help: "ManagedResources that flows wrote, deleted or released, by the action, such as Create, Update or Delete.",
		}, []string{"flow", "action"}),
		last: map[ownerKey]observation{},
	}
	registry.MustRegister(p.owners, p.bundles, p.tasks, p.oldest, p.steps)
	return p
}

// stateOf returns the state after an emission, and the reason for users.
func stateOf(result Result, err error) (State, string) {
	if err != nil {
		return StateFailed, ReasonOf(err)
	}
	if key, reason := first(result.Problems); reason != "" {
		return StateFailed, key.String() + ": " + reason
	}
	paced := ""
	for _, wait := range result.Plan.Waits {
		if wait.Name != WaitRollout {
			return StateWaiting, wait.Reason
		}
		paced = wait.Reason
	}
	switch key, reason := first(result.Pending); {
	case paced != "":
		return StatePaced, paced
	case reason != "":
		return StateWorking, key.String() + ": " + reason
	case len(result.Steps) > 0:
		return StateWorking, "ManagedResources were written"
	}
	return StateSettled, ""
}

// first returns the first entry by name.
func first(reasons map[Key]string) (Key, string) {
	var found Key
	for key := range reasons {
		if found == (Key{}) || cmp.Or(cmp.Compare(key.Namespace, found.Namespace), cmp.Compare(key.Name, found.Name)) < 0 {
			found = key
		}
	}
	return found, reasons[found]
}

// observe records the outcome of an emission, and logs a change of the state.
func (p *progressMetrics) observe(ctx context.Context, owner Owner, result Result, err error, now time.Time) {
	for _, step := range result.Steps {
		if slices.Contains(result.Written, step.Key) {
			p.steps.WithLabelValues(owner.Flow, string(step.Action)).Inc()
		}
	}
	state, reason := stateOf(result, err)
	next := observation{state: state, held: len(result.Held), pending: len(result.Pending), problems: len(result.Problems), tasks: len(result.Plan.Tasks)}
	key := ownerKey{owner.Flow, owner.Namespace, owner.Name}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.last[key]
	if state != StateSettled && state != StatePaced {
		if next.since = before.since; next.since.IsZero() {
			next.since = now
		}
	}
	if before.state != state && (known || state != StateSettled) {
		log.FromContext(ctx).Info("The state of a control plane has changed", "flow", owner.Flow, "owner", owner.String(), "from", before.state, "to", state, "reason", reason)
	}
	if deleted := state == StateSettled && result.Plan.Deleting; deleted {
		delete(p.last, key)
	} else {
		p.last[key] = next
	}
	if !known || before != next {
		p.count(owner.Flow)
	}
}

// forget drops an owner that was deleted, or is the responsibility of others now.
func (p *progressMetrics) forget(key ownerKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.last[key]; known {
		delete(p.last, key)
		p.count(key.flow)
	}
}

// count sets the gauges of a flow.
func (p *progressMetrics) count(flow string) {
	owners, oldest := map[State]int{}, time.Time{}
	var sum observation
	for key, one := range p.last {
		if key.flow != flow {
			continue
		}
		owners[one.state]++
		sum.held, sum.pending, sum.problems, sum.tasks = sum.held+one.held, sum.pending+one.pending, sum.problems+one.problems, sum.tasks+one.tasks
		if !one.since.IsZero() && (oldest.IsZero() || one.since.Before(oldest)) {
			oldest = one.since
		}
	}
	for _, state := range states {
		p.owners.WithLabelValues(flow, string(state)).Set(float64(owners[state]))
	}
	for state, number := range map[string]int{"held": sum.held, "pending": sum.pending, "problem": sum.problems} {
		p.bundles.WithLabelValues(flow, state).Set(float64(number))
	}
	p.tasks.WithLabelValues(flow).Set(float64(sum.tasks))
	seconds := 0.0
	if !oldest.IsZero() {
		seconds = float64(oldest.Unix())
	}
	p.oldest.WithLabelValues(flow).Set(seconds)
}

// Forget drops the metrics of an owner whose last emission does not end its flow: it disappeared, or another program has
// become responsible for it.
func Forget(flow, namespace, name string) { progress.forget(ownerKey{flow, namespace, name}) }
