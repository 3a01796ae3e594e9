package flow

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Task is an act that is due: something that is not a state, such as to rewrite what is encrypted with an old key. A plan has it until the
// ledger says that it has been done.
type Task struct {
	// Name of the task, and of its entry in the ledger.
	Name string
	// Value says for what it is done: it is done again for another value.
	Value string
}

// Due returns the tasks that the ledger does not say have been done.
func Due(ledger *Ledger, tasks ...Task) []Task {
	var due []Task
	for _, task := range tasks {
		if !ledger.Has(task.Name, task.Value) {
			due = append(due, task)
		}
	}
	return due
}

// Act carries out tasks of one name.
type Act struct {
	// Ready returns what has to be so before the act, as it is read from the API server; empty if it is. Nil for nothing.
	Ready func(ctx context.Context, owner Owner, task Task) (why string, err error)
	// Run does it, or a part of it. It may be called again at any time, also after it was done.
	Run func(ctx context.Context, owner Owner, task Task) (Outcome, error)
}

// Outcome is how far a task is.
type Outcome struct {
	Done bool
	// Progress says what is left, for people.
	Progress string
	// Again is after how long to look again; 0 if a watch will show it.
	Again time.Duration
}

// Runner carries out the tasks of plans.
type Runner struct {
	Acts   map[string]Act
	Writer client.Writer
	Clock  clock.PassiveClock
}

// Run carries out the first of the tasks that are due, and writes it into the ledger when it is done, before anything else happens: the
// caller makes a new plan then. It returns the outcome of that task. A task whose precondition does not hold is not done, and no other one
// takes its place: their order means something.
func (r *Runner) Run(ctx context.Context, owner Owner, ledger *Ledger, tasks []Task) (Outcome, error) {
	due := Due(ledger, tasks...)
	if len(due) == 0 {
		return Outcome{Done: true}, nil
	}
	task := due[0]
	act, known := r.Acts[task.Name]
	if !known {
		return Outcome{}, fmt.Errorf("task %s of %s: nothing carries it out", task.Name, owner)
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
