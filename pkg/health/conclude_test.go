package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// subject returns a ConfigMap or an object of another kind, changed by the function.
func subject(kind, namespace, name string, change func(*Subject)) Subject {
	s := Subject{Kind: kind, Namespace: namespace, Name: name}
	if change != nil {
		change(&s)
	}
	return s
}

func verdictOf(verdict Verdict) func(*Subject) { return func(s *Subject) { s.Verdict = verdict } }

func missingObject(s *Subject) { s.Missing = true }

func pendingObject(s *Subject) {
	s.Pending, s.Verdict = true, Verdict{Unhealthy: "as it was", Progressing: "as it was"}
}

func unreadObject(s *Subject) {
	s.Unknown, s.Pending, s.Verdict = "forbidden", true, Verdict{Unhealthy: "as it was", Progressing: "as it was"}
}

func TestConclusions(t *testing.T) {
	const (
		isTrue, isFalse, isUnknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	)
	healthy := resourcesv1alpha1.NewStatement(isTrue, "ResourcesHealthy", "All resources are healthy.")
	rolledOut := resourcesv1alpha1.NewStatement(isFalse, "ResourcesRolledOut", "All resources have been fully rolled out.")
	unread := resourcesv1alpha1.NewStatement(isUnknown, "ChecksPending", `Service "ns/web" could not be checked: forbidden`)
	well := subject("ConfigMap", "ns", "a", nil)
	for name, test := range map[string]struct {
		subjects             []Subject
		healthy, progressing resourcesv1alpha1.Statement
	}{
		"nothing": {nil, healthy, rolledOut},
		"well":    {[]Subject{well, subject("Pod", "ns", "b", nil)}, healthy, rolledOut},
		"missing": {[]Subject{well, subject("Deployment", "ns", "web", missingObject)},
			resourcesv1alpha1.NewStatement(isFalse, "DeploymentMissing", `Required Deployment "web" in namespace "ns" is missing`), rolledOut},
		"missing, with all else set": {[]Subject{subject("Deployment", "ns", "web", func(s *Subject) {
			unreadObject(s)
			s.Missing, s.Exempt, s.Notes = true, true, "notes"
		})}, resourcesv1alpha1.NewStatement(isFalse, "DeploymentMissing", `Required Deployment "web" in namespace "ns" is missing`), rolledOut},
		"kind not served": {[]Subject{subject("Widget", "", "w", func(s *Subject) {
			s.Missing, s.MissingDetail = true, `no matches for kind "Widget" in version "example.org/v1"`
		})}, resourcesv1alpha1.NewStatement(isFalse, "WidgetMissing",
			`Required Widget "w" in namespace "" is missing: no matches for kind "Widget" in version "example.org/v1"`), rolledOut},
		"unhealthy": {[]Subject{subject("Pod", "ns", "p", verdictOf(Verdict{Unhealthy: "it is ill"}))},
			resourcesv1alpha1.NewStatement(isFalse, "PodUnhealthy", `Pod "ns/p" is unhealthy: it is ill`), rolledOut},
		"unhealthy, cluster-scoped": {[]Subject{subject("CustomResourceDefinition", "", "d", verdictOf(Verdict{Unhealthy: "it is ill"}))},
			resourcesv1alpha1.NewStatement(isFalse, "CustomResourceDefinitionUnhealthy", `CustomResourceDefinition "/d" is unhealthy: it is ill`), rolledOut},
		"unhealthy, with Events": {[]Subject{subject("Service", "ns", "s", func(s *Subject) {
			s.Verdict.Unhealthy, s.Notes = "no ingress", "-> Events:\n* controller reported 5s ago: quota"
		})}, resourcesv1alpha1.NewStatement(isFalse, "ServiceUnhealthy",
			"Service \"ns/s\" is unhealthy: no ingress\n\n-> Events:\n* controller reported 5s ago: quota"), rolledOut},
		"check failed": {[]Subject{subject("Pod", "ns", "p", verdictOf(Verdict{Err: "no number"}))},
			resourcesv1alpha1.NewStatement(isFalse, "HealthCheckError", `Error executing health check for Pod "ns/p": no number`),
			resourcesv1alpha1.NewStatement(isUnknown, "ChecksPending", `Pod "ns/p" could not be checked: no number`)},
		"progressing": {[]Subject{well, subject("Deployment", "ns", "web", verdictOf(Verdict{Progressing: "1 of 2"}))},
			healthy, resourcesv1alpha1.NewStatement(isTrue, "DeploymentProgressing", `Deployment "ns/web" is progressing: 1 of 2`)},
		"exempt": {[]Subject{subject("Deployment", "ns", "web", func(s *Subject) {
			pendingObject(s)
			s.Exempt, s.Verdict.Err = true, "wrong"
		})}, healthy, rolledOut},
		"exempt, not read": {[]Subject{subject("Service", "ns", "web", func(s *Subject) {
			unreadObject(s)
			s.Exempt = true
		})}, unread, unread},
		"pending": {[]Subject{well, subject("Pod", "ns", "p", pendingObject)},
			resourcesv1alpha1.NewStatement(isUnknown, "ChecksPending", "The health checks have not yet been executed for the current set of resources."),
			resourcesv1alpha1.NewStatement(isUnknown, "ChecksPending", "Checks have not yet been executed for the current set of resources.")},
		"not read":              {[]Subject{well, subject("Service", "ns", "web", unreadObject)}, unread, unread},
		"not read, and pending": {[]Subject{subject("Pod", "ns", "p", pendingObject), subject("Service", "ns", "web", unreadObject)}, unread, unread},
		"certain trouble hides what is not known": {[]Subject{subject("Service", "ns", "web", unreadObject),
			subject("Pod", "ns", "p", pendingObject), subject("Job", "ns", "j", verdictOf(Verdict{Unhealthy: "x", Progressing: "y"}))},
			resourcesv1alpha1.NewStatement(isFalse, "JobUnhealthy", `Job "ns/j" is unhealthy: x`), resourcesv1alpha1.NewStatement(isTrue, "JobProgressing", `Job "ns/j" is progressing: y`)},
		"sorted, by gravity first": {[]Subject{
			subject("Pod", "b", "a", verdictOf(Verdict{Unhealthy: "1", Progressing: "1"})),
			subject("Pod", "a", "b", verdictOf(Verdict{Unhealthy: "2", Progressing: "2"})),
			subject("Pod", "a", "a", verdictOf(Verdict{Unhealthy: "3", Progressing: "3"})),
			subject("Job", "z", "z", verdictOf(Verdict{Unhealthy: "4", Progressing: "4"})),
			subject("APIService", "", "z", verdictOf(Verdict{Err: "5"})),
			subject("Secret", "z", "z", missingObject),
		}, resourcesv1alpha1.NewStatement(isFalse, "SecretMissing", `Required Secret "z" in namespace "z" is missing
Job "z/z" is unhealthy: 4
Pod "a/a" is unhealthy: 3
Pod "a/b" is unhealthy: 2
Pod "b/a" is unhealthy: 1
Error executing health check for APIService "/z": 5`), resourcesv1alpha1.NewStatement(isTrue, "JobProgressing", `Job "z/z" is progressing: 4
Pod "a/a" is progressing: 3
Pod "a/b" is progressing: 2
Pod "b/a" is progressing: 1`)},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time in the reverse order
				if got := Healthy(test.subjects); got != test.healthy {
					t.Errorf("healthy:\n got %+v\nwant %+v", got, test.healthy)
				}
				if got := Progressing(test.subjects); got != test.progressing {
					t.Errorf("progressing:\n got %+v\nwant %+v", got, test.progressing)
				}
				slices.Reverse(test.subjects)
			}
		})
	}
}

func TestGroupsOfOneName(t *testing.T) {
	a := Subject{Group: "a.org", Kind: "Widget", Name: "w", Verdict: Verdict{Unhealthy: "of a"}}
	b := Subject{Group: "b.org", Kind: "Widget", Name: "w", Verdict: Verdict{Unhealthy: "of b"}}
	if one, other := Healthy([]Subject{a, b}), Healthy([]Subject{b, a}); one != other {
		t.Errorf("the result depends on the order: %+v, %+v", one, other)
	}
}

func TestManyAreNamedInPart(t *testing.T) {
	for count, last := range map[int]string{10: `Pod "ns/09" is unhealthy: ill`, 11: "and 1 more", 250: "and 240 more"} {
		var subjects []Subject
		for i := range count {
			subjects = append(subjects, subject("Pod", "ns", fmt.Sprintf("%02d", i), verdictOf(Verdict{Unhealthy: "ill"})))
		}
		lines := strings.Split(Healthy(subjects).Message, "\n")
		if len(lines) != min(count, 11) || lines[0] != `Pod "ns/00" is unhealthy: ill` || lines[len(lines)-1] != last {
			t.Errorf("of %d: %q", count, lines)
		}
	}
}

func TestMessagesAreCapped(t *testing.T) {
	const prefix = len(`Pod "ns/p" is unhealthy: `)
	exact := strings.Repeat("x", conditiontext.MaxCondition-prefix)
	of := func(detail string) string {
		return Healthy([]Subject{subject("Pod", "ns", "p", verdictOf(Verdict{Unhealthy: detail}))}).Message
	}
	if got := of(exact); len(got) != conditiontext.MaxCondition || !strings.HasSuffix(got, "x") {
		t.Errorf("a message of the maximum length was changed to %d bytes", len(got))
	}
	for shift := range 4 {
		got := of(strings.Repeat("x", shift) + strings.Repeat("😀", conditiontext.MaxCondition))
		if len(got) > conditiontext.MaxCondition || len(got) < conditiontext.MaxCondition-10 {
			t.Errorf("the message has %d bytes", len(got))
		}
		if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || !strings.HasSuffix(got, "😀 …") {
			t.Errorf("the message is truncated within a character: …%q", got[len(got)-20:])
		}
	}
}
