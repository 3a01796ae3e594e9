package flow

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Task is an imperative action that is not a state, such as rewriting data that is encrypted with an old key. A plan
// contains it until the ledger records its completion.
type Task struct {
	// Name of the task, and of its entry in the ledger.
	Name string
	// Value is the subject of the task. The task is executed again for another value.
	Value string
}

// Due returns the tasks that the ledger does not record as completed.
func Due(ledger *Ledger, tasks ...Task) []Task {
	var due []Task
	for _, task := range tasks {
		if !ledger.Has(task.Name, task.Value) {
			due = append(due, task)
		}
	}
	return due
}

// Act executes tasks with one name.
type Act struct {
	// Ready checks the precondition against the API server. It returns why the precondition does not hold, empty if it
	// does. A nil Ready means no precondition.
	Ready func(ctx context.Context, owner Owner, task Task) (why string, err error)
	// Run executes the task or a part of it. It must be idempotent, also after completion.
	Run func(ctx context.Context, owner Owner, task Task) (Outcome, error)
}

// Outcome is the progress of a task.
type Outcome struct {
	Done bool
	// Progress describes the remaining work for users.
	Progress string
	// Again is when to check again; 0 if a watch reports the change.
	Again time.Duration
}

// Runner executes the tasks of plans.
type Runner struct {
	Acts   map[string]Act
	Writer client.Writer
	Clock  clock.PassiveClock
}

// Run executes the first pending task and returns its outcome. It records the completion in the ledger before anything
// else happens, and the caller must then compute a new plan. If the precondition of the task does not hold, no other
// task is executed, because the order of tasks matters.
func (r *Runner) Run(ctx context.Context, owner Owner, ledger *Ledger, tasks []Task) (Outcome, error) {
	due := Due(ledger, tasks...)
	if len(due) == 0 {
		return Outcome{Done: true}, nil
	}
	task := due[0]
	act, known := r.Acts[task.Name]
	if !known {
		return Outcome{}, fmt.Errorf("task %s of %s is unknown", task.Name, owner)
	}
	if act.Ready != nil {
		why, err := act.Ready(ctx, owner, task)
		if err != nil {
			return Outcome{}, fmt.Errorf("task %s of %s: read its precondition: %w", task.Name, owner, err)
		}
		if why != "" {
			return Outcome{Progress: why}, nil
		}
	}
	outcome, err := act.Run(ctx, owner, task)
	if err != nil {
		return Outcome{}, fmt.Errorf("task %s of %s: %w", task.Name, owner, err)
	}
	if !outcome.Done {
		return outcome, nil
	}
	return outcome, ledger.Write(ctx, r.Writer, owner, task.Name, Entry{Value: task.Value, Time: r.Clock.Now().UTC()})
}
