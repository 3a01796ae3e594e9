package health

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// story is a series of states of one object. Each state follows from the previous one.
type story struct {
	kind  string
	steps []step
}

type step struct {
	state string
	// manifest is written into the Secret, if it is set.
	manifest string
	// before runs first, act last, if they are set.
	before, act          func(*fixture)
	healthy, progressing want
	// then runs when the conditions match, if it is set.
	then func(*fixture)
}

// TestStates runs through the states of objects of all kinds with rules, and of some without.
func TestStates(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stories := [][]story{deploymentStories(), setStories(), podStories(), otherStories(), customStories(), missingStories()}
	table := &table{}
	t.Run("of", func(t *testing.T) {
		for _, group := range stories {
			for _, story := range group {
				t.Run(strings.ReplaceAll(story.kind+" "+story.steps[0].state, " ", "_"), func(t *testing.T) {
					t.Parallel()
					table.add(f.in(t).runStory(story))
				})
			}
		}
	})
	t.Logf("the conditions by state:\n%s", table)
}

// managed is the name of the ManagedResource in a story.
const managed = "story"

// runStory runs through the states of a story and returns lines for the table.
func (f *fixture) runStory(story story) []string {
	f.Helper()
	var lines []string
	f.follow(managed)
	for i, step := range story.steps {
		if step.before != nil {
			step.before(f)
		}
		switch {
		case i == 0:
			f.manage(managed, step.manifest)
		case step.manifest != "":
			f.update(managed, step.manifest)
		}
		if step.act != nil {
			step.act(f)
		}
		mr := f.eventuallySaysIn(step.state, step.healthy, step.progressing)
		if step.then != nil {
			step.then(f)
		}
		lines = append(lines, fmt.Sprintf("%-24s %s", story.kind, step.state))
		for _, conditionType := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing} {
			condition := conditionOf(mr, conditionType)
			lines = append(lines, fmt.Sprintf("    %-20s %-8s %-32s %s", condition.Type, condition.Status, condition.Reason,
				strings.ReplaceAll(condition.Message, "\n", "\n"+strings.Repeat(" ", 66))))
		}
	}
	return lines
}

// eventuallySaysIn is eventuallySays with the name of the state in the failure output.
func (f *fixture) eventuallySaysIn(state string, healthy, progressing want) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	defer func() {
		if f.Failed() {
			f.Logf("in the state %q", state)
		}
	}()
	return f.eventuallySays(managed, healthy, progressing)
}

// table collects the lines of stories.
type table struct {
	mu      sync.Mutex
	stories []string
}

func (t *table) add(lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stories = append(t.stories, strings.Join(lines, "\n"))
}

func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.stories, "\n")
}
