package care

import (
	"fmt"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Contribution is what an extension reports about one of its objects, for the condition of the Shoot of the same type.
type Contribution struct {
	// Kind, such as Worker, and Name of the object, and the Type of the extension.
	Kind, Name, Type string
	Condition        corev1beta1.Condition
	// Heartbeat is when the extension last gave a sign of life; zero if it never did.
	Heartbeat time.Time
}

// contributed returns the findings of extensions on a condition, and when one of them becomes outdated; zero for never. Rules and reasons are
// Gardener's: what an extension says counts while the extension lives.
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

// outdated is the finding of an extension that is silent. The message has the time of the last sign of life and not its age, so that it stays.
func (c Contribution) outdated() finding {
	since := "has never renewed its heartbeat"
	if !c.Heartbeat.IsZero() {
		since = "has not renewed its heartbeat since " + c.Heartbeat.UTC().Format(time.RFC3339)
	}
	return finding{
		status: corev1beta1.ConditionUnknown, reason: c.Kind + "OutdatedHealthCheckReport",
		message: fmt.Sprintf("%s %s: what the extension of type %s reports is outdated: it %s", c.Kind, c.Name, c.Type, since),
	}
}

// finding returns what a report says that is not True.
func (c Contribution) finding() (finding, bool) {
	found := finding{
		status: c.Condition.Status, message: fmt.Sprintf("%s %s of type %s: %s", c.Kind, c.Name, c.Type, readiness.Limited(c.Condition.Message)), codes: c.Condition.Codes,
	}
	switch c.Condition.Status {
	case corev1beta1.ConditionProgressing:
		found.reason = c.Kind + c.Condition.Reason
	case corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown:
		// What an extension cannot check is a failure, too.
		found.status, found.reason = corev1beta1.ConditionFalse, c.Kind+"UnhealthyReport"
	default:
		return finding{}, false
	}
	return found, true
}
