package v1alpha1

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestSetCondition(t *testing.T) {
	const kind, other = ResourcesApplied, ResourcesHealthy
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	t1, t2 := t0.Add(time.Hour), t0.Add(2*time.Hour)
	good := Statement{ConditionTrue, "Good", "fine"}
	first := SetCondition(SetCondition(nil, other, good, t0), kind, good, t0)
	if len(first) != 2 || first[0].Type != other || first[1].Type != kind {
		t.Fatalf("got %+v, want the condition appended", first)
	}
	first = SetCondition(first, kind, Statement{good.Status, good.Reason, "very fine"}, t1)

	for name, test := range map[string]struct {
		statement            Statement
		transitioned, update time.Time
	}{
		"the same":       {Statement{good.Status, good.Reason, "very fine"}, t0, t1},
		"other message":  {Statement{good.Status, good.Reason, "superb"}, t0, t2},
		"other reason":   {Statement{good.Status, "Better", "very fine"}, t0, t2},
		"other status":   {Statement{ConditionFalse, good.Reason, "very fine"}, t2, t2},
		"other entirely": {Statement{ConditionFalse, "Bad", "no"}, t2, t2},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(first)
			got := SetCondition(first, kind, test.statement, t2)
			if !reflect.DeepEqual(first, before) {
				t.Error("the caller's conditions were changed")
			}
			if len(got) != 2 || got[0].Type != other {
				t.Fatalf("got %+v, want the condition replaced in place", got)
			}
			condition := got[1]
			if (Statement{condition.Status, condition.Reason, condition.Message}) != test.statement {
				t.Errorf("got %+v, want %+v", condition, test.statement)
			}
			if !condition.LastTransitionTime.Equal(ptr.To(metav1.NewTime(test.transitioned))) ||
				!condition.LastUpdateTime.Equal(ptr.To(metav1.NewTime(test.update))) {
				t.Errorf("transition at %v, update at %v; want %v, %v", condition.LastTransitionTime, condition.LastUpdateTime, test.transitioned, test.update)
			}
		})
	}
}

func TestConditionOf(t *testing.T) {
	conditions := []Condition{{Type: ResourcesHealthy, Reason: "Other"}, {Type: ResourcesApplied, Reason: "Mine"}}
	if got := ConditionOf(conditions, ResourcesApplied); got.Reason != "Mine" {
		t.Errorf("got %+v, want the condition of that type", got)
	}
	if got := ConditionOf(conditions, ResourcesProgressing); got.Status != ConditionUnknown || got.Type != ResourcesProgressing {
		t.Errorf("got %+v for a missing condition, want Unknown", got)
	}
}

func TestSetReady(t *testing.T) {
	const isTrue, isFalse, unknown, progressing = ConditionTrue, ConditionFalse, ConditionUnknown, ConditionProgressing
	for name, test := range map[string]struct {
		applied, healthy, rolling ConditionStatus
		status                    ConditionStatus
		reason                    string
	}{
		"nothing known":     {"", "", "", unknown, ""},
		"applying":          {progressing, isTrue, isFalse, unknown, "Applied"},
		"not applied":       {isFalse, isTrue, isFalse, isFalse, "Applied"},
		"not healthy":       {isTrue, isFalse, isTrue, isFalse, "Healthy"},
		"rolling out":       {isTrue, isTrue, isTrue, unknown, "Rolling"},
		"not checked":       {isTrue, unknown, unknown, unknown, "Healthy"},
		"rollout not known": {isTrue, isTrue, unknown, unknown, "Rolling"},
		"never checked":     {isTrue, "", "", isTrue, "Applied"},
		"all well":          {isTrue, isTrue, isFalse, isTrue, "Applied"},
	} {
		t.Run(name, func(t *testing.T) {
			var conditions []Condition
			for conditionType, statement := range map[ConditionType]Statement{
				ResourcesApplied: {test.applied, "Applied", "a"}, ResourcesHealthy: {test.healthy, "Healthy", "h"}, ResourcesProgressing: {test.rolling, "Rolling", "r"},
			} {
				if statement.Status != "" {
					conditions = SetCondition(conditions, conditionType, statement, time.Unix(1, 0))
				}
			}
			ready := ConditionOf(SetReady(conditions, time.Unix(1, 0)), Ready)
			if ready.Status != test.status || ready.Reason != test.reason {
				t.Errorf("Ready is %s %s, want %s %s", ready.Status, ready.Reason, test.status, test.reason)
			}
		})
	}
}
