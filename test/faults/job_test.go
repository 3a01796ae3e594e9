package faults

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// errand is a scenario of another controller than that of ManagedResources, in one run. It keeps what it has to know of the run.
type errand struct {
	// run runs the controller, wired as the program wires it.
	run func(context.Context, *life) error
	// pairs are texts that differ between runs beside the namespace, and what stands for them.
	pairs []string
	// given makes what is there before the change, which change makes.
	given, change func()
	// before tells what of what is given is not so yet, and after the same of the change.
	before, after func() []string
	// attest looks at a call that writes, before the API server carries it out.
	attest func(call, []byte)
	// picture tells what is there at the end of a run, without what differs between runs.
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

// play runs the errand until all is as it has to be, and stops the controller.
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

// verify checks what has to hold when nothing runs any more.
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
	slices.Sort(lines) // their order was that of the names that were replaced
	return strings.Join(lines, "\n")
}

// nothing objects to nothing.
func nothing() []string { return nil }
