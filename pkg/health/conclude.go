package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// maxNamedObjects is how many objects a message spells out, which keeps it readable.
const maxNamedObjects = 10

// Messages of conditions while nothing is known, and when all is well (those of gardener-resource-manager).
const (
	healthPending      = "The health checks have not yet been executed for the current set of resources."
	progressingPending = "Checks have not yet been executed for the current set of resources."
	allHealthy         = "All resources are healthy."
	allRolledOut       = "All resources have been fully rolled out."
)

// Subject is one object of a ManagedResource, and what was found of it. Of Missing, Unknown, Exempt and Pending the first
// that is set counts, and the Verdict only if none is.
type Subject struct {
	// Group, Kind, Namespace and Name name the object. The namespace of a cluster-scoped object is empty.
	Group, Kind, Namespace, Name string
	// Missing says that the object does not exist.
	Missing bool
	// MissingDetail says more of a missing object, such as that its kind is not served; it may be empty.
	MissingDetail string
	// Unknown says why the object could not be read; empty if it could. It becomes part of a message, so it should not
	// differ each time.
	Unknown string
	// Exempt is set if the object asks for no checks. It has to exist all the same.
	Exempt bool
	// Pending is set if the object exists, but its present state has not been seen yet.
	Pending bool
	// Verdict is what Check says of the object, with the Pods counted that it asks for.
	Verdict Verdict
	// Notes explain an unhealthy object further, such as its Events; they follow the message after a blank line.
	Notes string
}

// finding is one line of a message. The rank says how grave it is, the gravest first.
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

// Healthy concludes what ResourcesHealthy says of the objects of a ManagedResource. It is False if any is missing,
// unhealthy or cannot be checked, and names all such objects, the gravest first, which gives the reason. It is Unknown if
// that is unknown, because an object could not be read or was not checked yet. Reasons and texts are
// gardener-resource-manager's, which names the first object only.
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

// Progressing concludes what ResourcesProgressing says of the objects of a ManagedResource. It is True if any is still
// rolling out, and names all such objects. It is Unknown if an object could not be read or checked,
// or is still to be looked at. Missing objects do not count. Reasons and texts are gardener-resource-manager's, which names
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
			busy = append(busy, finding{s, 0, s.Kind + resourcesv1alpha1.ReasonKindProgressing, fmt.Sprintf("%s is progressing: %s", s, s.Verdict.Progressing)})
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

// HealthPending is what ResourcesHealthy says while nothing is known of the current objects.
func HealthPending() resourcesv1alpha1.Statement {
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionUnknown, resourcesv1alpha1.ReasonChecksPending, healthPending)
}

// ProgressingPending is what ResourcesProgressing says while nothing is known of the current objects.
func ProgressingPending() resourcesv1alpha1.Statement {
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionUnknown, resourcesv1alpha1.ReasonChecksPending, progressingPending)
}

// String names the object as gardener-resource-manager does in messages.
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

// summarize returns the result that names what was found, one object a line, so that the same findings always give the same
// text. The first one decides about the reason.
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
	return resourcesv1alpha1.Statement{Status: status, Reason: findings[0].reason, Message: conditiontext.ForCondition(strings.Join(lines, "\n"))}
}
