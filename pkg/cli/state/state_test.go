package state

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	yes     = resourcesv1alpha1.ConditionTrue
	no      = resourcesv1alpha1.ConditionFalse
	unknown = resourcesv1alpha1.ConditionUnknown
	going   = resourcesv1alpha1.ConditionProgressing
)

func of(applied, healthy, progressing resourcesv1alpha1.ConditionStatus) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{}}}
	mr.Status.ObservedGeneration = 2
	for i, status := range []resourcesv1alpha1.ConditionStatus{applied, healthy, progressing} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: resourcesv1alpha1.ConditionTypes()[i], Status: status, Message: string(resourcesv1alpha1.ConditionTypes()[i]),
			LastTransitionTime: metav1.NewTime(time.Unix(int64(i+1), 0)),
		})
	}
	return mr
}

func TestOf(t *testing.T) {
	deleted, suspended, waitsForState, unseen, waits, newborn := of(yes, yes, no), of(yes, yes, no), of(yes, yes, no), of(yes, yes, no),
		of(going, unknown, unknown), &resourcesv1alpha1.ManagedResource{}
	resumed := of(yes, yes, no)
	resumed.Status.Conditions[0].Reason = resourcesv1alpha1.ReasonManagedResourceIgnored
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	suspended.Annotations[resourcesv1alpha1.AnnotationIgnore] = "true"
	waitsForState.Annotations[resourcesv1alpha1.AnnotationOperation] = resourcesv1alpha1.OperationWaitForState
	unseen.Generation = 3
	waits.Status.Conditions[0].Reason = resourcesv1alpha1.ReasonDependencyNotReady
	newborn.Generation, newborn.Status.ObservedGeneration = 1, -1
	for name, test := range map[string]struct {
		mr      *resourcesv1alpha1.ManagedResource
		want    Word
		since   int64
		message string
	}{
		"all is well":               {of(yes, yes, no), Ready, 3, "ResourcesApplied"},
		"not applied":               {of(no, no, yes), Failed, 1, "ResourcesApplied"},
		"not healthy":               {of(yes, no, yes), Unhealthy, 2, "ResourcesHealthy"},
		"not healthy while applied": {of(going, no, yes), Unhealthy, 2, "ResourcesHealthy"},
		"being applied":             {of(going, unknown, unknown), Applying, 1, "ResourcesApplied"},
		"rolled out":                {of(yes, yes, yes), Progressing, 3, "ResourcesProgressing"},
		"rolled out, health open":   {of(yes, unknown, yes), Progressing, 3, "ResourcesProgressing"},
		"health not known":          {of(yes, unknown, no), Unknown, 2, "ResourcesHealthy"},
		"progress not known":        {of(yes, yes, unknown), Unknown, 3, "ResourcesProgressing"},
		"waits for another":         {waits, Waiting, 1, "ResourcesApplied"},
		"deleted":                   {deleted, Deleting, 9, ""},
		"suspended":                 {suspended, Suspended, 0, "It is suspended until it is resumed."},
		"waits for its state":       {waitsForState, Suspended, 0, "It is suspended until it is resumed."},
		"resumed":                   {resumed, Pending, 0, "It was resumed, and no resource-manager has processed it since then."},
		"changed":                   {unseen, Pending, 0, "No resource-manager has processed its last change yet."},
		"new":                       {newborn, Pending, 0, "No resource-manager has processed it yet."},
	} {
		got := Of(test.mr)
		since := time.Time{}
		if test.since > 0 {
			since = time.Unix(test.since, 0)
		}
		if got.Word != test.want || !got.Since.Equal(since) || got.Message != test.message {
			t.Errorf("%s: %+v, want %+v", name, got, test)
		}
	}
}

func TestHeadline(t *testing.T) {
	for _, test := range []struct {
		state State
		want  string
	}{
		{State{Word: Failed, Message: " first\tline\x1b[2J\nsecond"}, "first line[2J"},
		{State{Word: Ready, Message: "All resources are applied."}, ""},
		{State{Word: Unknown}, ""},
	} {
		if got := test.state.Headline(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.state, got, test.want)
		}
	}
}

func TestRank(t *testing.T) {
	for i, word := range Words {
		if word.Rank() != i || word.IsWell() != (i >= Suspended.Rank()) {
			t.Errorf("%s has rank %d; healthy states must be last", word, word.Rank())
		}
	}
}

func TestIsWell(t *testing.T) {
	for _, word := range []Word{Ready, Suspended} {
		if !word.IsWell() {
			t.Errorf("%s needs attention", word)
		}
	}
	for _, word := range []Word{Failed, Unhealthy, Deleting, Pending, Waiting, Applying, Progressing, Unknown} {
		if word.IsWell() {
			t.Errorf("%s does not need attention", word)
		}
	}
}
