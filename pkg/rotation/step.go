package rotation

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Step executes the next step of the rotations and changes of encryption of an owner that are under way.
type Step struct {
	Owner  flow.Owner
	Ledger *flow.Ledger
	Writer client.Writer
	Clock  clock.PassiveClock
	// Tasks are the due ones, in their order.
	Tasks []flow.Task
	// Act returns how to execute a task, and whether it is known. A task that nothing executes must not count as done.
	Act func(flow.Task) (flow.Act, bool)
	// Unsettled returns the parts of the plan that are not rolled out.
	Unsettled func(context.Context) ([]string, error)
	// Advance sets the next phases. It is called once no task is left and the plan is rolled out.
	Advance func()
	// Failed is called after an error of a task; nil for nothing.
	Failed func()
}

// Next runs the due tasks. If none is left and the plan is rolled out, it advances the phases. wait is what the operation waits for, empty for
// nothing. again is the time until the next call, or 0 if a watch triggers it.
func (s Step) Next(ctx context.Context) (wait string, again time.Duration, err error) {
	unsettled, err := s.Unsettled(ctx)
	if err != nil {
		return "", 0, err
	}
	if len(unsettled) > 0 {
		return "credentials are rotated once all changes are rolled out: " + unsettled[0], 0, nil
	}
	if len(s.Tasks) == 0 {
		s.Advance()
		return "", time.Millisecond, nil
	}
	outcome, err := s.Run(ctx)
	if err != nil && s.Failed != nil {
		s.Failed()
	}
	return outcome.Progress, outcome.Again, err
}

// Run runs the tasks in order, until one is not done immediately. All of them require that the plan is rolled out.
func (s Step) Run(ctx context.Context) (flow.Outcome, error) {
	runner := flow.Runner{Writer: s.Writer, Clock: s.Clock, Acts: map[string]flow.Act{}}
	for _, task := range s.Tasks {
		if act, known := s.Act(task); known {
			runner.Acts[task.Name] = act
		}
		outcome, err := runner.Run(ctx, s.Owner, s.Ledger, []flow.Task{task})
		if err != nil {
			return flow.Outcome{}, err
		}
		if !outcome.Done {
			return outcome, nil
		}
	}
	return flow.Outcome{Done: true, Again: time.Millisecond}, nil // plan again: other tasks may be due now
}

// Nothing is how to execute a task for which it suffices that the plan is rolled out: all servers accept the new credentials.
func Nothing() flow.Act {
	return Act(func(context.Context, flow.Task) (flow.Outcome, error) { return flow.Outcome{Done: true}, nil })
}

// Act executes a task with a function.
func Act(run func(context.Context, flow.Task) (flow.Outcome, error)) flow.Act {
	return flow.Act{Run: func(ctx context.Context, _ flow.Owner, task flow.Task) (flow.Outcome, error) { return run(ctx, task) }}
}
