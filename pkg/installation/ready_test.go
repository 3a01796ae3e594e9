package installation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// reporting returns an installation with the given statuses of the conditions Valid, Installed, Healthy and Progressing, in
// this order. A status is T, F, U, or - for a missing condition.
func reporting(name, statuses string) *corev1beta1.ControllerInstallation {
	i := &corev1beta1.ControllerInstallation{}
	i.Spec.RegistrationRef.Name = name
	for at, letter := range statuses {
		if letter == '-' {
			continue
		}
		status := map[rune]corev1beta1.ConditionStatus{'T': corev1beta1.ConditionTrue, 'F': corev1beta1.ConditionFalse, 'U': corev1beta1.ConditionUnknown}[letter]
		kind := checked[at].kind
		i.Status.Conditions = append(i.Status.Conditions, corev1beta1.Condition{Type: kind, Status: status, Message: "about " + string(kind)})
	}
	return i
}

// TestReady is the decision table of the condition, except for times.
func TestReady(t *testing.T) {
	for name, test := range map[string]struct {
		installations []*corev1beta1.ControllerInstallation
		want          string
	}{
		"no extension":                   {nil, "True AllExtensionsReady No extension is installed in the Seed."},
		"all ready":                      {[]*corev1beta1.ControllerInstallation{reporting("a", "TTTF"), reporting("b", "TTTF")}, "True AllExtensionsReady All extensions are installed and healthy."},
		"not looked at":                  {[]*corev1beta1.ControllerInstallation{reporting("a", "")}, "False NotAllExtensionsInstalled Some extensions are not installed: a (gardenlet has not observed it yet)"},
		"not valid":                      {[]*corev1beta1.ControllerInstallation{reporting("a", "FTTF")}, "False NotAllExtensionsValid Some extensions are not valid: a (about Valid)"},
		"validity is not known":          {[]*corev1beta1.ControllerInstallation{reporting("a", "UTTF")}, "False NotAllExtensionsValid Some extensions are not valid: a (about Valid)"},
		"not installed":                  {[]*corev1beta1.ControllerInstallation{reporting("a", "TFTF")}, "False NotAllExtensionsInstalled Some extensions are not installed: a (about Installed)"},
		"not healthy":                    {[]*corev1beta1.ControllerInstallation{reporting("a", "TTFF")}, "False NotAllExtensionsHealthy Some extensions are not healthy: a (about Healthy)"},
		"progressing":                    {[]*corev1beta1.ControllerInstallation{reporting("a", "TTTT")}, "False SomeExtensionsProgressing Some extensions are being rolled out: a (about Progressing)"},
		"progress is not known":          {[]*corev1beta1.ControllerInstallation{reporting("a", "TTTU")}, "False SomeExtensionsProgressing Some extensions are being rolled out: a (about Progressing)"},
		"a condition is missing":         {[]*corev1beta1.ControllerInstallation{reporting("a", "TT-F")}, "False NotAllExtensionsHealthy Some extensions are not healthy: a (the condition Healthy is missing)"},
		"several are missing":            {[]*corev1beta1.ControllerInstallation{reporting("a", "-TT-")}, "False NotAllExtensionsHealthy Some extensions are not healthy: a (the condition Valid is missing)"},
		"missing and a failure after it": {[]*corev1beta1.ControllerInstallation{reporting("a", "-FTF")}, "False NotAllExtensionsInstalled Some extensions are not installed: a (about Installed)"},
		"the first failure of one":       {[]*corev1beta1.ControllerInstallation{reporting("a", "FFFT")}, "False NotAllExtensionsValid Some extensions are not valid: a (about Valid)"},
		"the worst of several": {
			[]*corev1beta1.ControllerInstallation{reporting("d", "TTTT"), reporting("c", "TTFF"), reporting("b", "TFFT"), reporting("a", "TTTF")},
			"False NotAllExtensionsInstalled Some extensions are not installed: b (about Installed)",
		},
		"several with the same": {
			[]*corev1beta1.ControllerInstallation{reporting("b", "TTFF"), reporting("a", "TTFF")},
			"False NotAllExtensionsHealthy Some extensions are not healthy: a (about Healthy), b (about Healthy)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			condition, next := Ready(test.installations, nil, time.Minute, time.Unix(1000, 0))
			if got := fmt.Sprintf("%s %s %s", condition.Status, condition.Reason, condition.Message); got != test.want || !next.IsZero() || condition.Type != corev1beta1.SeedExtensionsReady {
				t.Errorf("got  %s, next %v\nwant %s", got, next, test.want)
			}
		})
	}
}

// TestReadyNamesFew checks that the message stays readable with many extensions and long texts.
func TestReadyNamesFew(t *testing.T) {
	var many []*corev1beta1.ControllerInstallation
	for i := range 25 {
		many = append(many, reporting(fmt.Sprintf("extension-%02d", i), "FTTF"))
		many[i].Status.Conditions[0].Message = strings.Repeat("x", 1000)
	}
	condition, _ := Ready(many, nil, 0, time.Unix(0, 0))
	if len(condition.Message) > 2500 || !strings.HasSuffix(condition.Message, "and 15 more") || !strings.Contains(condition.Message, "extension-09") || strings.Contains(condition.Message, "extension-10") {
		t.Errorf("the message has %d bytes: %s", len(condition.Message), condition.Message)
	}
}

// TestReadyTimes checks how the condition changes over time.
func TestReadyTimes(t *testing.T) {
	start := time.Unix(1000, 0)
	good, bad := []*corev1beta1.ControllerInstallation{reporting("a", "TTTF")}, []*corev1beta1.ControllerInstallation{reporting("a", "TTFF")}
	healthy, _ := Ready(good, nil, 0, start)
	failing, _ := Ready(bad, nil, 0, start)
	waiting := failing
	waiting.Status = corev1beta1.ConditionProgressing
	unknown := failing
	unknown.Status = corev1beta1.ConditionUnknown
	for name, test := range map[string]struct {
		installations   []*corev1beta1.ControllerInstallation
		before          corev1beta1.Condition
		threshold       time.Duration
		after           time.Duration
		status          corev1beta1.ConditionStatus
		next            time.Duration
		moved, explains bool
	}{
		"still ready":                       {good, healthy, time.Minute, time.Hour, corev1beta1.ConditionTrue, 0, false, false},
		"fails":                             {bad, healthy, time.Minute, time.Hour, corev1beta1.ConditionProgressing, time.Hour + time.Minute, true, true},
		"fails, without a threshold":        {bad, healthy, 0, time.Hour, corev1beta1.ConditionFalse, 0, true, true},
		"fails for less than the threshold": {bad, waiting, time.Minute, 30 * time.Second, corev1beta1.ConditionProgressing, time.Minute, false, false},
		"fails for the threshold":           {bad, waiting, time.Minute, time.Minute, corev1beta1.ConditionFalse, 0, true, true},
		"waits, and the threshold is gone":  {bad, waiting, 0, time.Second, corev1beta1.ConditionFalse, 0, true, true},
		"ready while it waits":              {good, waiting, time.Minute, time.Second, corev1beta1.ConditionTrue, 0, true, true},
		"still fails":                       {bad, failing, time.Minute, time.Hour, corev1beta1.ConditionFalse, 0, false, false},
		"ready again":                       {good, failing, time.Minute, time.Hour, corev1beta1.ConditionTrue, 0, true, true},
		"fails after not being known":       {bad, unknown, time.Minute, time.Hour, corev1beta1.ConditionFalse, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(test.after)
			condition, next := Ready(test.installations, &test.before, test.threshold, now)
			want := time.Time{}
			if test.next > 0 {
				want = start.Add(test.next)
			}
			transition, updated := metav1.NewTime(start), metav1.NewTime(start)
			if test.moved {
				transition = metav1.NewTime(now)
			}
			if test.explains {
				updated = metav1.NewTime(now)
			}
			if condition.Status != test.status || !next.Equal(want) || !condition.LastTransitionTime.Equal(&transition) || !condition.LastUpdateTime.Equal(&updated) {
				t.Errorf("%+v, next %v, want %+v", condition, next, test)
			}
		})
	}
}
