package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// maxNamedObjects limits the objects that a message names, to keep it readable.
const maxNamedObjects = 10

// Messages of conditions without results, and of conditions of healthy objects. They are those of
// gardener-resource-manager.
const (
	healthPending      = "The health checks have not yet been executed for the current set of resources."
	progressingPending = "Checks have not yet been executed for the current set of resources."
	allHealthy         = "All resources are healthy."
	allRolledOut       = "All resources have been fully rolled out."
)

// Subject is one object of a ManagedResource with its findings. The first of Missing, Unknown, Exempt and Pending that
// is set counts. The Verdict counts only if none of them is set.
type Subject struct {
	// Group, Kind, Namespace and Name identify the object. The namespace of a cluster-scoped object is empty.
	Group, Kind, Namespace, Name string
	// Missing is set if the object does not exist.
	Missing bool
	// MissingDetail adds a detail about a missing object, for example that its kind is not served. It may be empty.
	MissingDetail string
	// Unknown is the reason why the object could not be read; empty if it could. It becomes part of a message, so the same
	// cause should always give the same text.
	Unknown string
	// Exempt is set if checks are disabled for the object. The object must still exist.
	Exempt bool
	// Pending is set if the object exists, but its current state has not been observed yet.
	Pending bool
	// Verdict is the result of Check, with OldPods counted if it requests a count.
	Verdict Verdict
	// Notes explain an unhealthy object, for example with its Events. They follow the message after a blank line.
	Notes string
}

// finding is one line of a message. Findings are sorted by rank, the most severe first.
type finding struct {
	subject         *Subject
	rank            int
	reason, message string
}

// Ranks of findings.
const (
	rankMissing = iota
	rankUnhealthy
	rankError
)

// Healthy computes ResourcesHealthy from the objects of a ManagedResource. It is False if any object is missing,
// unhealthy or cannot be checked. The message names all such objects, the most severe first, and the first one gives
// the reason. The status is Unknown if no object is known to be bad, but an object could not be read or was not checked
// yet. Reasons and texts are those of gardener-resource-manager, which names the first object only.
func Healthy(subjects []Subject) resourcesv1alpha1.Statement {
	var bad, unread []finding
	pending := false
	for i := range subjects {
		s := &subjects[i]
		switch {
		case s.Missing:
			bad = append(bad, finding{s, rankMissing, s.Kind + resourcesv1alpha1.ReasonKindMissing, s.missingMessage()})
		case s.Unknown != "":
			unread = append(unread, s.unread(s.Unknown))
		case s.Exempt:
		case s.Pending:
			pending = true
		case s.Verdict.Unhealthy != "":
			bad = append(bad, finding{s, rankUnhealthy, s.Kind + resourcesv1alpha1.ReasonKindUnhealthy, s.unhealthyMessage()})
		case s.Verdict.Err != "":
			bad = append(bad, finding{s, rankError, resourcesv1alpha1.ReasonHealthCheckError,
				fmt.Sprintf("Error executing health check for %s: %s", s, s.Verdict.Err)})
		}
	}
	switch {
	case len(bad) > 0:
		return summarize(resourcesv1alpha1.ConditionFalse, bad)
	case len(unread) > 0:
		return summarize(resourcesv1alpha1.ConditionUnknown, unread)
	case pending:
		return HealthPending()
	}
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonResourcesHealthy, allHealthy)
}

// Progressing computes ResourcesProgressing from the objects of a ManagedResource. It is True if any object is still
// rolling out, and names all such objects. Otherwise it is Unknown if an object could not be read or checked, or was
// not checked yet. Missing objects do not count. Reasons and texts are those of gardener-resource-manager, which names
// the first object only.
func Progressing(subjects []Subject) resourcesv1alpha1.Statement {
	var busy, unread []finding
	pending := false
	for i := range subjects {
		s := &subjects[i]
		switch {
		case s.Missing:
		case s.Unknown != "":
			unread = append(unread, s.unread(s.Unknown))
		case s.Exempt:
		case s.Pending:
			pending = true
		case s.Verdict.Progressing != "":
			busy = append(busy, finding{
				s, 0, s.Kind + resourcesv1alpha1.ReasonKindProgressing, fmt.Sprintf("%s is progressing: %s", s, s.Verdict.Progressing),
			})
		case s.Verdict.Err != "":
			unread = append(unread, s.unread(s.Verdict.Err))
		}
	}
	switch {
	case len(busy) > 0:
		return summarize(resourcesv1alpha1.ConditionTrue, busy)
	case len(unread) > 0:
		return summarize(resourcesv1alpha1.ConditionUnknown, unread)
	case pending:
		return ProgressingPending()
	}
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonResourcesRolledOut, allRolledOut)
}

// HealthPending returns ResourcesHealthy for current objects without any result.
func HealthPending() resourcesv1alpha1.Statement {
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionUnknown, resourcesv1alpha1.ReasonChecksPending, healthPending)
}

// ProgressingPending returns ResourcesProgressing for current objects without any result.
func ProgressingPending() resourcesv1alpha1.Statement {
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionUnknown, resourcesv1alpha1.ReasonChecksPending, progressingPending)
}

// String formats the object as messages of gardener-resource-manager do.
func (s *Subject) String() string {
	return fmt.Sprintf("%s %q", s.Kind, s.Namespace+"/"+s.Name)
}

func (s *Subject) missingMessage() string {
	message := fmt.Sprintf("Required %s %q in namespace %q is missing", s.Kind, s.Name, s.Namespace)
	if s.MissingDetail != "" {
		message += ": " + s.MissingDetail
	}
	return message
}

func (s *Subject) unhealthyMessage() string {
	message := fmt.Sprintf("%s is unhealthy: %s", s, s.Verdict.Unhealthy)
	if s.Notes != "" {
		message += "\n\n" + s.Notes
	}
	return message
}

func (s *Subject) unread(why string) finding {
	return finding{s, 0, resourcesv1alpha1.ReasonChecksPending, fmt.Sprintf("%s could not be checked: %s", s, why)}
}

// summarize returns a statement that names each finding on a line of its own. Findings are sorted, so the same findings
// always give the same text. The first one gives the reason.
func summarize(status resourcesv1alpha1.ConditionStatus, findings []finding) resourcesv1alpha1.Statement {
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			cmp.Compare(a.subject.Kind, b.subject.Kind),
			cmp.Compare(a.subject.Namespace, b.subject.Namespace),
			cmp.Compare(a.subject.Name, b.subject.Name),
			cmp.Compare(a.subject.Group, b.subject.Group),
		)
	})
	var lines []string
	for _, f := range findings[:min(len(findings), maxNamedObjects)] {
		lines = append(lines, f.message)
	}
	if unnamed := len(findings) - len(lines); unnamed > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", unnamed))
	}
	return resourcesv1alpha1.Statement{
		Status: status, Reason: findings[0].reason, Message: conditiontext.ForCondition(strings.Join(lines, "\n")),
	}
}
