package shoot

import (
	"context"
	"slices"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/shoot/cleanup"
)

const (
	// taskCleanUpBegins writes down when the clean-up began. It does nothing else.
	taskCleanUpBegins = "clean-up-begins"
	// cleanUpTimeout is after how long a step of the clean-up is reported as an error. It goes on all the same.
	cleanUpTimeout = 10 * time.Minute
	// cleanUpPass is how long one pass may take for the clean-up.
	cleanUpPass = 30 * time.Second
	// The times after which the cluster is looked at again. They grow with the time that a step takes.
	cleanUpSoon, cleanUpLate = time.Second, 15 * time.Second
)

// cleanUpTasks returns what is left to do of the deletion of what users have in the cluster. Users cannot have anything in a cluster whose API server
// never served: its resource-manager has never had a token.
func (in Inputs) cleanUpTasks() []flow.Task {
	if _, served := in.Tokens[accessSecret(resourcemanager.Account)]; !served || !in.emitted(bundleServer) {
		return nil
	}
	tasks := []flow.Task{{Name: taskCleanUpBegins, Value: string(in.Owner.UID)}}
	for _, stage := range cleanup.Stages(in.Shoot.Annotations) {
		tasks = append(tasks, flow.Task{Name: stage.Name, Value: string(in.Owner.UID)})
	}
	if in.Ledger == nil {
		return tasks // it is not known what was done: nothing is deleted until it is
	}
	return flow.Due(in.Ledger, tasks...)
}

// cleanUpSince returns when the first of the tasks that are due began: when the one before it ended, or the deletion began.
func (in Inputs) cleanUpSince() time.Time {
	since := in.Shoot.DeletionTimestamp.Time
	for _, stage := range slices.Concat([]string{taskCleanUpBegins}, []string{cleanup.StageWebhooks, cleanup.StageExtendedAPIs, cleanup.StageResources}) {
		if entry, done := in.Ledger.Entry(stage); done && entry.Value == string(in.Owner.UID) && entry.Time.After(since) {
			since = entry.Time
		}
	}
	return since
}

// cleanUp takes a step of the deletion of what users have in the cluster, if one is due, and returns after how long the next one is; 0 for never. While
// something is left, the result says so by a wait, which becomes an error.
func (r *reconciler) cleanUp(ctx context.Context, in Inputs, result *flow.Result) (time.Duration, error) {
	if !in.Deleting || len(result.Plan.Tasks) == 0 || in.Ledger == nil {
		return 0, nil
	}
	runner := &flow.Runner{Writer: r.seed, Clock: r.options.Clock, Acts: map[string]flow.Act{
		taskCleanUpBegins: {Run: func(context.Context, flow.Owner, flow.Task) (flow.Outcome, error) {
			return flow.Outcome{Done: true}, nil
		}},
	}}
	for _, stage := range cleanup.Stages(in.Shoot.Annotations) {
		runner.Acts[stage.Name] = flow.Act{
			Ready: func(context.Context, flow.Owner, flow.Task) (string, error) {
				return in.notServing(stage, *result), nil
			},
			Run: func(ctx context.Context, _ flow.Owner, _ flow.Task) (flow.Outcome, error) {
				return r.cleanUpStage(ctx, in, stage), nil
			},
		}
	}
	since := in.cleanUpSince()
	outcome, err := runner.Run(ctx, in.Owner, in.Ledger, result.Plan.Tasks)
	if err != nil {
		return 0, err
	}
	if outcome.Done {
		return time.Millisecond, nil // the next plan is made with the ledger as it is now
	}
	result.Plan.Waits = append(result.Plan.Waits, flow.Wait{
		Name: result.Plan.Tasks[0].Name, Reason: outcome.Progress, Deadline: since.Add(cleanUpTimeout), Code: corev1beta1.ErrorCleanupClusterResources,
	})
	return outcome.Again, nil
}

// notServing says which program of the control plane a stage waits for. A watch shows when it is there.
func (in Inputs) notServing(stage cleanup.Stage, result flow.Result) string {
	needed := []string{bundleServer}
	if stage.NeedsControllers {
		needed = append(needed, bundleControl)
	}
	for _, name := range needed {
		if in.emitted(name) && !serves(result, in.key(name)) {
			return "what users have in the cluster is deleted when " + name + " works"
		}
	}
	return ""
}

// cleanUpStage deletes what a stage consists of. An API server that does not answer is waited for.
func (r *reconciler) cleanUpStage(ctx context.Context, in Inputs, stage cleanup.Stage) flow.Outcome {
	again := min(max(in.Now.Sub(in.cleanUpSince())/10, cleanUpSoon), cleanUpLate)
	ctx, cancel := context.WithTimeout(ctx, cleanUpPass)
	defer cancel()
	shoot, err := r.connect(in)
	if err != nil {
		return flow.Outcome{Progress: flow.ReasonOf(err), Again: again}
	}
	began, _ := in.Ledger.Entry(taskCleanUpBegins)
	left, err := cleanup.Cleaner{Client: shoot, Began: began.Time, Now: in.Now}.Run(ctx, stage)
	if err != nil {
		return flow.Outcome{Progress: join(left, "what users have in the cluster cannot be deleted: "+flow.ReasonOf(err)), Again: again}
	}
	return flow.Outcome{Done: left == "", Progress: left, Again: again}
}
