// Package state summarizes the state of a ManagedResource in one word. It has no dependencies on clients or clocks.
package state

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// Word is the state of a ManagedResource in one word.
type Word string

// The words, the most severe first.
const (
	// Failed means that something could not be applied or deleted.
	Failed Word = "Failed"
	// Unhealthy means that an object is missing or not healthy.
	Unhealthy Word = "Unhealthy"
	// Deleting means that the ManagedResource is being deleted.
	Deleting Word = "Deleting"
	// Pending means that no resource-manager has processed the last change.
	Pending Word = "Pending"
	// Waiting means that it waits for another ManagedResource.
	Waiting Word = "Waiting"
	// Applying means that objects are being applied, or deleted.
	Applying Word = "Applying"
	// Progressing means that objects are being rolled out.
	Progressing Word = "Progressing"
	// Unknown means that the conditions do not show the state.
	Unknown Word = "Unknown"
	// Suspended means that reconciliation is suspended.
	Suspended Word = "Suspended"
	// Ready means that all objects are applied, healthy and rolled out.
	Ready Word = "Ready"
)

// Words are all words, the most severe first.
var Words = []Word{Failed, Unhealthy, Deleting, Pending, Waiting, Applying, Progressing, Unknown, Suspended, Ready}

// Rank returns the index of a word in Words. More severe words have a lower rank.
func (w Word) Rank() int { return slices.Index(Words, w) }

// State is the state of a ManagedResource.
type State struct {
	Word Word
	// Since is the time when the state began. It is zero if unknown.
	Since time.Time
	// Reason and Message are from the condition that determines the state. They are empty without one.
	Reason, Message string
}

// Headline returns the first line of the problem. It is empty if there is none.
func (s State) Headline() string {
	if s.Word == Ready {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(s.Message), "\n")
	return screen.OneLine(first)
}

// Of returns the state of a ManagedResource.
func Of(mr *resourcesv1alpha1.ManagedResource) State {
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	switch {
	case mr.DeletionTimestamp != nil:
		return deleting(mr, applied)
	case IsSuspended(mr):
		return State{Word: Suspended, Since: since(applied, mr), Message: "It is suspended until it is resumed."}
	case mr.Status.ObservedGeneration != mr.Generation:
		return pending(mr, applied)
	case applied.Reason == resourcesv1alpha1.ReasonManagedResourceIgnored:
		return State{Word: Pending, Message: "It was resumed, and no resource-manager has processed it since then."}
	case applied.Status == resourcesv1alpha1.ConditionFalse:
		return from(Failed, applied)
	case applied.Reason == resourcesv1alpha1.ReasonDependencyNotReady:
		return from(Waiting, applied)
	case healthy.Status == resourcesv1alpha1.ConditionFalse:
		return from(Unhealthy, healthy)
	case applied.Status == resourcesv1alpha1.ConditionProgressing:
		return from(Applying, applied)
	case progressing.Status == resourcesv1alpha1.ConditionTrue:
		return from(Progressing, progressing)
	}
	for _, condition := range []resourcesv1alpha1.Condition{applied, healthy} {
		if condition.Status != resourcesv1alpha1.ConditionTrue {
			return from(Unknown, condition)
		}
	}
	if progressing.Status != resourcesv1alpha1.ConditionFalse {
		return from(Unknown, progressing)
	}
	return State{Word: Ready, Since: latest(applied, healthy, progressing), Reason: applied.Reason, Message: applied.Message}
}

// IsSuspended reports whether a ManagedResource is suspended.
func IsSuspended(mr *resourcesv1alpha1.ManagedResource) bool {
	return resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) ||
		mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState
}

func from(word Word, condition resourcesv1alpha1.Condition) State {
	return State{Word: word, Since: condition.LastTransitionTime.Time, Reason: condition.Reason, Message: condition.Message}
}

func deleting(mr *resourcesv1alpha1.ManagedResource, applied resourcesv1alpha1.Condition) State {
	state := State{Word: Deleting, Since: mr.DeletionTimestamp.Time}
	switch applied.Reason {
	case resourcesv1alpha1.ReasonDeletionPending, resourcesv1alpha1.ReasonDeletionFailed, resourcesv1alpha1.ReasonDeletionWaits:
		state.Reason, state.Message = applied.Reason, applied.Message
	}
	if IsSuspended(mr) && applied.Reason == "" {
		state.Message = "It is suspended until it is resumed."
	}
	return state
}

// pending returns the state after a change that was not processed yet, with the reason if processing failed.
func pending(mr *resourcesv1alpha1.ManagedResource, applied resourcesv1alpha1.Condition) State {
	if applied.Status == resourcesv1alpha1.ConditionFalse || applied.Status == resourcesv1alpha1.ConditionProgressing {
		return State{Word: Pending, Since: applied.LastTransitionTime.Time, Reason: applied.Reason, Message: applied.Message}
	}
	state := State{Word: Pending, Message: "No resource-manager has processed its last change yet."}
	if len(mr.Status.Conditions) == 0 {
		state.Since, state.Message = mr.CreationTimestamp.Time, "No resource-manager has processed it yet."
	}
	return state
}

func since(condition resourcesv1alpha1.Condition, mr *resourcesv1alpha1.ManagedResource) time.Time {
	if condition.Reason == resourcesv1alpha1.ReasonManagedResourceIgnored {
		return condition.LastUpdateTime.Time
	}
	if len(mr.Status.Conditions) == 0 {
		return mr.CreationTimestamp.Time
	}
	return time.Time{}
}

func latest(conditions ...resourcesv1alpha1.Condition) time.Time {
	var last time.Time
	for _, condition := range conditions {
		if condition.LastTransitionTime.After(last) {
			last = condition.LastTransitionTime.Time
		}
	}
	return last
}

// IsWell reports whether no attention is needed: the ManagedResource is ready, or was suspended on purpose.
func (w Word) IsWell() bool { return w == Ready || w == Suspended }

// Style returns the display style of a word.
func (w Word) Style() screen.Style {
	switch w {
	case Ready:
		return screen.Good
	case Failed, Unhealthy:
		return screen.Bad
	case Suspended, Unknown:
		return screen.Faint
	}
	return screen.Busy
}

// ClassOf returns the class of a ManagedResource.
func ClassOf(mr *resourcesv1alpha1.ManagedResource) string {
	if mr.Spec.Class == nil || *mr.Spec.Class == "" {
		return resourcesv1alpha1.DefaultClass
	}
	return *mr.Spec.Class
}

// NameOf returns namespace and name.
func NameOf(mr *resourcesv1alpha1.ManagedResource) types.NamespacedName {
	return types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
}
