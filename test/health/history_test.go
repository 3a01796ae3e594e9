package health

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// history is every version of the conditions of a ManagedResource.
type history struct {
	mu       sync.Mutex
	began    time.Time
	versions []version
	// grown signals another version.
	grown chan struct{}
}

// version holds the conditions of one version of a ManagedResource.
type version struct {
	at         time.Time
	observed   int64
	conditions map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.Condition
}

// follow records the history of the ManagedResource of a name from now on, or from its creation, until the test ends.
func (f *fixture) follow(name string) *history {
	f.Helper()
	c, err := client.NewWithWatch(f.controlPlane.Config(), client.Options{Scheme: f.client.Scheme()})
	must(f, err)
	h := &history{began: time.Now(), grown: make(chan struct{}, 1)}
	events, err := c.Watch(f.ctx, &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace(f.namespace),
		client.MatchingFields{"metadata.name": name})
	must(f, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			h.note(event)
		}
	}()
	f.Cleanup(func() {
		events.Stop()
		<-ended
		if f.Failed() {
			f.Logf("the history of %s:\n%s", name, h)
		}
	})
	return h
}

func (h *history) note(event watch.Event) {
	mr, is := event.Object.(*resourcesv1alpha1.ManagedResource)
	if !is || event.Type == watch.Deleted {
		return
	}
	conditions := map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.Condition{}
	for _, condition := range mr.Status.Conditions {
		conditions[condition.Type] = condition
	}
	h.mu.Lock()
	h.versions = append(h.versions, version{time.Now(), mr.Status.ObservedGeneration, conditions})
	h.mu.Unlock()
	select {
	case h.grown <- struct{}{}:
	default:
	}
}

func (h *history) all() []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[:len(h.versions):len(h.versions)]
}

// changes returns the versions of one condition that differ from the previous version.
func (h *history) changes(conditionType resourcesv1alpha1.ConditionType) []resourcesv1alpha1.Condition {
	var changes []resourcesv1alpha1.Condition
	for _, version := range h.all() {
		condition := version.conditions[conditionType]
		if len(changes) == 0 || !reflect.DeepEqual(changes[len(changes)-1], condition) {
			changes = append(changes, condition)
		}
	}
	return changes
}

// statuses returns the successive statuses of a condition.
func (h *history) statuses(conditionType resourcesv1alpha1.ConditionType) string {
	var statuses []string
	for _, condition := range h.changes(conditionType) {
		status := cmp.Or(string(condition.Status), "none")
		if len(statuses) == 0 || statuses[len(statuses)-1] != status {
			statuses = append(statuses, status)
		}
	}
	return strings.Join(statuses, " ")
}

// until returns how long it took until a condition had a status; 0 if it never had it.
func (h *history) until(conditionType resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) time.Duration {
	for _, version := range h.all() {
		if version.conditions[conditionType].Status == status {
			return version.at.Sub(h.began)
		}
	}
	return 0
}

// ready reports whether a version has the objects of a generation as applied and healthy.
func (h *history) ready(generation int64) bool {
	return slices.ContainsFunc(h.all(), func(v version) bool {
		return v.observed == generation && v.conditions[resourcesv1alpha1.ResourcesApplied].Status == resourcesv1alpha1.ConditionTrue &&
			v.conditions[resourcesv1alpha1.ResourcesHealthy].Status == resourcesv1alpha1.ConditionTrue
	})
}

// objectionToApplied returns an objection if no version has a generation as applied yet. It is empty if one has.
func (h *history) objectionToApplied(generation int64) string {
	if slices.ContainsFunc(h.all(), func(v version) bool {
		return v.observed == generation && v.conditions[resourcesv1alpha1.ResourcesApplied].Status == resourcesv1alpha1.ConditionTrue
	}) {
		return ""
	}
	return fmt.Sprintf("generation %d is not applied", generation)
}

// String returns a line for each change of a condition, with the time since the history began.
func (h *history) String() string {
	var lines []string
	var before version
	for _, version := range h.all() {
		for _, conditionType := range resourcesv1alpha1.ConditionTypes() {
			condition := version.conditions[conditionType]
			if reflect.DeepEqual(condition, before.conditions[conditionType]) {
				continue
			}
			first, rest, _ := strings.Cut(condition.Message, "\n")
			if rest != "" {
				first += fmt.Sprintf(" (and %d lines)", strings.Count(rest, "\n")+1)
			}
			lines = append(lines, fmt.Sprintf("%8.3fs %-20s %-11s %-24s %s", version.at.Sub(h.began).Seconds(), conditionType,
				condition.Status, condition.Reason, first))
		}
		before = version
	}
	return strings.Join(lines, "\n")
}

// objectionToTimes returns an objection if a history has wrong times. The transition time must change only with the status, the update
// time with every change.
func (h *history) objectionToTimes() string {
	for _, conditionType := range resourcesv1alpha1.ConditionTypes() {
		changes := h.changes(conditionType)
		for i := 1; i < len(changes); i++ {
			before, after := changes[i-1], changes[i]
			sameStatus := before.Status == after.Status
			sameWords := sameStatus && before.Reason == after.Reason && before.Message == after.Message
			switch {
			case before.Type == "":
			case sameWords:
				return fmt.Sprintf("%s changed nothing but its times: %s", conditionType, times(before, after))
			case sameStatus && !before.LastTransitionTime.Equal(&after.LastTransitionTime):
				return fmt.Sprintf("%s stayed %s, but its transition time moved: %s", conditionType, after.Status, times(before, after))
			case after.LastTransitionTime.Before(&before.LastTransitionTime), after.LastUpdateTime.Before(&before.LastUpdateTime),
				after.LastUpdateTime.Before(&after.LastTransitionTime):
				return fmt.Sprintf("the times of %s went backwards: %s", conditionType, times(before, after))
			}
		}
	}
	return ""
}

func times(before, after resourcesv1alpha1.Condition) string {
	clock := func(t metav1.Time) string { return t.Format("15:04:05") }
	return fmt.Sprintf("transition %s to %s, update %s to %s", clock(before.LastTransitionTime), clock(after.LastTransitionTime),
		clock(before.LastUpdateTime), clock(after.LastUpdateTime))
}
