package care

import (
	"fmt"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Contribution is a condition that an extension reports for one of its objects. It is part of the Shoot's condition of the same type.
type Contribution struct {
	// Kind, such as Worker, and Name of the object, and the Type of the extension.
	Kind, Name, Type string
	Condition        corev1beta1.Condition
	// Heartbeat is when the extension last renewed its heartbeat, or zero.
	Heartbeat time.Time
}

// contributed returns the findings of extensions for a condition, and when the next one becomes outdated, or zero for
// never. Rules and reasons are Gardener's: reports are valid while the extension renews its heartbeat.
func (o Observation) contributed(kind corev1beta1.ConditionType) (findings []finding, next time.Time) {
	for _, each := range o.Contributions {
		if each.Condition.Type != kind {
			continue
		}
		if o.Limits.Stale > 0 {
			if outdated := each.Heartbeat.Add(o.Limits.Stale); !o.Now.Before(outdated) {
				findings = append(findings, each.outdated())
				continue
			} else if !each.Heartbeat.IsZero() {
				next = requeue.Earlier(next, outdated)
			}
		}
		if found, counts := each.finding(); counts {
			findings = append(findings, found)
		}
	}
	return findings, next
}

// outdated returns the finding for an extension without a recent heartbeat. The message contains the time of the last
// heartbeat instead of its age, so that it does not change.
func (c Contribution) outdated() finding {
	since := "has never renewed its heartbeat"
	if !c.Heartbeat.IsZero() {
		since = "has not renewed its heartbeat since " + c.Heartbeat.UTC().Format(time.RFC3339)
	}
	return finding{
		status: corev1beta1.ConditionUnknown, reason: c.Kind + "OutdatedHealthCheckReport",
		message: fmt.Sprintf("%s %s: the report of the extension of type %s is outdated: the extension %s", c.Kind, c.Name, c.Type, since),
	}
}

// finding returns the finding of a report that is not True.
func (c Contribution) finding() (finding, bool) {
	found := finding{
		status: c.Condition.Status, codes: c.Condition.Codes,
		message: fmt.Sprintf("%s %s of type %s: %s", c.Kind, c.Name, c.Type, readiness.Limited(c.Condition.Message)),
	}
	switch c.Condition.Status {
	case corev1beta1.ConditionProgressing:
		found.reason = c.Kind + c.Condition.Reason
	case corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown:
		// An extension that cannot check its objects is also a failure.
		found.status, found.reason = corev1beta1.ConditionFalse, c.Kind+"UnhealthyReport"
	default:
		return finding{}, false
	}
	return found, true
}
