package faults

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// errand is a scenario of a controller other than that of ManagedResources, in one run. It holds the state of the
// run.
type errand struct {
	// run runs the controller, wired as the program wires it.
	run func(context.Context, *life) error
	// pairs are texts that differ between runs, in addition to the namespace, and their replacements.
	pairs []string
	// given creates the state before the change, and change makes the change.
	given, change func()
	// before returns the objections to the state before the change, and after those to the state after it.
	before, after func() []string
	// attest checks a call that writes before the API server executes it.
	attest func(call, []byte)
	// picture describes the final state of a run, without details that differ between runs.
	picture func() string
}

// job is a run of an errand.
type job struct {
	*ground
	errand
}

func newJob(t *testing.T, begin func(*ground) errand) *job {
	t.Helper()
	g := newGround(t)
	return &job{g, begin(g)}
}

func (j *job) newLine(plans ...*plan) *line { return j.ground.newLine(plans, j.attest, j.pairs...) }

// play runs the errand until the expected state is reached, and stops the controller.
func (j *job) play(l *line) {
	j.Helper()
	j.given()
	stop := j.keepRunning(l, "", j.run)
	j.eventually(j.before)
	l.begin()
	j.change()
	j.eventually(func() []string { return slices.Concat(l.pending(true), j.after()) })
	stop()
}

// verify checks the final state after all processes have stopped.
func (j *job) verify(undisturbed string) {
	j.Helper()
	for _, finding := range append(j.after(), j.violated()...) {
		j.Error(finding)
	}
	if got := j.snapshot(); undisturbed != "" && got != undisturbed {
		j.Errorf("the outcome differs from that of a run without a fault:\n%s\nwithout a fault:\n%s", got, undisturbed)
	}
}

func (j *job) snapshot() string {
	text := strings.NewReplacer(append([]string{j.namespace, placeholder}, j.pairs...)...).Replace(j.picture())
	lines := strings.Split(text, "\n")
	slices.Sort(lines) // they are sorted by the names that were replaced
	return strings.Join(lines, "\n")
}

// nothing objects to nothing.
func nothing() []string { return nil }
