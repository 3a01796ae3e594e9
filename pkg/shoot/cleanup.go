package shoot

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/shoot/cleanup"
)

const (
	// taskCleanUpBegins records the start of the clean-up. It does nothing else.
	taskCleanUpBegins = "clean-up-begins"
	// cleanUpTimeout is how long a stage of the clean-up may take before an error is reported. The clean-up then continues.
	cleanUpTimeout = 10 * time.Minute
	// cleanUpPass limits the time that one reconcile spends on the clean-up.
	cleanUpPass = 30 * time.Second
	// cleanUpSoon and cleanUpLate are the minimum and maximum interval of checks of the cluster. The interval grows with the
	// duration of a stage.
	cleanUpSoon, cleanUpLate = time.Second, 15 * time.Second
)

// cleanUpTasks returns the remaining tasks that delete users' objects in the cluster. There are none if the API server
// has never served, or if its namespace is already being deleted.
func (in Inputs) cleanUpTasks() []flow.Task {
	// If the clean-up has begun, the API server was deleted by hand and is created again.
	begun := in.Ledger != nil && in.Ledger.Has(taskCleanUpBegins, string(in.Owner.UID))
	if !in.served() || in.NamespaceDeleting || !in.emitted(bundleAPIServer) && !begun {
		return nil
	}
	tasks := []flow.Task{{Name: taskCleanUpBegins, Value: string(in.Owner.UID)}}
	for _, stage := range in.cleanUpStages() {
		tasks = append(tasks, flow.Task{Name: stage.Name, Value: string(in.Owner.UID)})
	}
	if in.Ledger == nil {
		return tasks // nothing is deleted until the ledger is known
	}
	return flow.Due(in.Ledger, tasks...)
}

// cleanUpStages returns the stages of the clean-up. Only a cluster with nodes has volumes.
func (in Inputs) cleanUpStages() []cleanup.Stage {
	stages := cleanup.Stages(in.Shoot.Annotations)
	if in.hasWorkers() {
		stages = append(stages, cleanup.VolumeStage())
	}
	return stages
}

// cleanUpSince returns the start of the first due task: the end of the previous one, or the start of the deletion.
func (in Inputs) cleanUpSince() time.Time {
	since := ptr.Deref(in.Shoot.DeletionTimestamp, metav1.Time{Time: in.Now}).Time
	if in.Ledger == nil {
		return since
	}
	for _, stage := range slices.Concat(
		[]string{taskCleanUpBegins}, []string{cleanup.StageWebhooks, cleanup.StageExtendedAPIs, cleanup.StageResources, cleanup.StageVolumes},
	) {
		if entry, done := in.Ledger.Entry(stage); done && entry.Value == string(in.Owner.UID) && entry.Time.After(since) {
			since = entry.Time
		}
	}
	return since
}

// cleanUp executes the next step of the deletion of users' objects in the cluster.
func (p *pass) cleanUp(ctx context.Context) error {
	again, err := p.reconciler.cleanUp(ctx, p.in, &p.Result)
	p.busy = p.busy || again > 0
	p.Wake.In(again)
	return err
}

// cleanUp runs one step of the deletion of users' objects in the cluster, if one is due. It returns the time until the
// next step, or 0 if there is none. While objects are left, it adds a wait to the result, which becomes an error after
// cleanUpTimeout.
func (r *reconciler) cleanUp(ctx context.Context, in Inputs, result *flow.Result) (time.Duration, error) {
	if !in.Deleting || len(result.Plan.Tasks) == 0 || in.Ledger == nil {
		return 0, nil
	}
	runner := &flow.Runner{Writer: r.seed, Clock: r.options.Clock, Acts: map[string]flow.Act{
		taskCleanUpBegins: {Run: func(context.Context, flow.Owner, flow.Task) (flow.Outcome, error) {
			return flow.Outcome{Done: true}, nil
		}},
	}}
	for _, stage := range in.cleanUpStages() {
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
		return time.Millisecond, nil // plan again with the changed ledger
	}
	result.Plan.Waits = append(result.Plan.Waits, flow.Wait{
		Name: result.Plan.Tasks[0].Name, Reason: outcome.Progress,
		Deadline: since.Add(cleanUpTimeout), Code: corev1beta1.ErrorCleanupClusterResources,
	})
	return outcome.Again, nil
}

// notServing names the component of the control plane for which a stage waits. A watch triggers the next reconcile once it is available.
func (in Inputs) notServing(stage cleanup.Stage, result flow.Result) string {
	needed := []string{bundleAPIServer}
	if stage.NeedsControllers {
		needed = append(needed, bundleControllerManager)
	}
	for _, name := range needed {
		if in.emitted(name) && !serves(result, in.key(name)) {
			return "users' objects in the cluster are deleted once " + name + " is available"
		}
	}
	return ""
}

// cleanUpStage deletes the objects of a stage. It retries if the API server does not answer.
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
		return flow.Outcome{Progress: table.Join(left, "users' objects in the cluster cannot be deleted: "+flow.ReasonOf(err)), Again: again}
	}
	return flow.Outcome{Done: left == "", Progress: left, Again: again}
}
