// Package state sums up in one word how a ManagedResource is. It decides alone: no client, no clock.
package state

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// Word is how a ManagedResource is.
type Word string

// The words, the gravest first.
const (
	// Failed means that something could not be applied or deleted.
	Failed Word = "Failed"
	// Unhealthy means that an object is missing or not healthy.
	Unhealthy Word = "Unhealthy"
	// Deleting means that the ManagedResource is being deleted.
	Deleting Word = "Deleting"
	// Pending means that no resource-manager has taken in the last change.
	Pending Word = "Pending"
	// Waiting means that it waits for another ManagedResource.
	Waiting Word = "Waiting"
	// Applying means that objects are being applied, or deleted.
	Applying Word = "Applying"
	// Progressing means that objects are being rolled out.
	Progressing Word = "Progressing"
	// Unknown means that the conditions do not tell.
	Unknown Word = "Unknown"
	// Suspended means that it asks to be left alone.
	Suspended Word = "Suspended"
	// Ready means that all objects are applied, healthy and rolled out.
	Ready Word = "Ready"
)

// Words are all words, the gravest first.
var Words = []Word{Failed, Unhealthy, Deleting, Pending, Waiting, Applying, Progressing, Unknown, Suspended, Ready}

// Rank is the place of a word among all: the graver, the less.
func (w Word) Rank() int { return slices.Index(Words, w) }

// State is how a ManagedResource is.
type State struct {
	Word Word
	// Since is when that began; zero if it is not known.
	Since time.Time
	// Reason and Message are those of the condition that decides; empty if none does.
	Reason, Message string
}

// Headline returns the first line of what is wrong; nothing if nothing is.
func (s State) Headline() string {
	if s.Word == Ready {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(s.Message), "\n")
	return screen.OneLine(first)
}

// Of returns how a ManagedResource is.
func Of(mr *resourcesv1alpha1.ManagedResource) State {
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	switch {
	case mr.DeletionTimestamp != nil:
		return deleting(mr, applied)
	case IsSuspended(mr):
		return State{Word: Suspended, Since: since(applied, mr), Message: "It is left alone until it is resumed."}
	case mr.Status.ObservedGeneration != mr.Generation:
		return pending(mr, applied)
	case applied.Reason == resourcesv1alpha1.ReasonManagedResourceIgnored:
		return State{Word: Pending, Message: "It was resumed, and no resource-manager has looked at it since."}
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

// IsSuspended tells whether a ManagedResource asks to be left alone.
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
	case resourcesv1alpha1.ReasonDeletionPending, resourcesv1alpha1.ReasonDeletionFailed:
		state.Reason, state.Message = applied.Reason, applied.Message
	}
	if IsSuspended(mr) && applied.Reason == "" {
		state.Message = "It is left alone until it is resumed."
	}
	return state
}

// pending says that a change was not taken in. One that was tried and failed says why.
func pending(mr *resourcesv1alpha1.ManagedResource, applied resourcesv1alpha1.Condition) State {
	if applied.Status == resourcesv1alpha1.ConditionFalse || applied.Status == resourcesv1alpha1.ConditionProgressing {
		return State{Word: Pending, Since: applied.LastTransitionTime.Time, Reason: applied.Reason, Message: applied.Message}
	}
	state := State{Word: Pending, Message: "No resource-manager has taken in its last change yet."}
	if len(mr.Status.Conditions) == 0 {
		state.Since, state.Message = mr.CreationTimestamp.Time, "No resource-manager has looked at it yet."
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

// IsWell tells whether nothing has to be done: it is ready, or was suspended on purpose.
func (w Word) IsWell() bool { return w == Ready || w == Suspended }

// Style is how a word is shown.
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

// ClassOf returns the class of resource-managers that is responsible for a ManagedResource.
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
