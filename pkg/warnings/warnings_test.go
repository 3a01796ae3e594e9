package warnings

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(since time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-since)) }

func warning(name, message string, first, last time.Duration, count int32) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Message: message, Source: corev1.EventSource{Component: "service-controller"},
		FirstTimestamp: ago(first), LastTimestamp: ago(last), Count: count,
	}
}

func TestDescribe(t *testing.T) {
	modern := corev1.Event{
		Message: "quota\n  exceeded", ReportingController: "cloud.example.org/lb", EventTime: metav1.NewMicroTime(noon.Add(-2 * time.Hour)),
		Series: &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(noon.Add(-5*time.Minute - 30*time.Second))},
	}
	for name, test := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"none":   {nil, ""},
		"once":   {[]corev1.Event{warning("a", "failed", 3*time.Minute, 3*time.Minute, 1)}, "\n\n-> Events:\n* service-controller reported 3m ago: failed"},
		"often":  {[]corev1.Event{warning("a", "failed", 10*time.Minute, 3*time.Minute, 7)}, "\n\n-> Events:\n* service-controller reported 3m ago (x7 over 10m): failed"},
		"now":    {[]corev1.Event{warning("a", "failed", time.Second, time.Second, 1)}, "\n\n-> Events:\n* service-controller reported less than 1m ago: failed"},
		"future": {[]corev1.Event{warning("a", "failed", -time.Hour, -time.Hour, 1)}, "\n\n-> Events:\n* service-controller reported less than 1m ago: failed"},
		"series": {[]corev1.Event{modern}, "\n\n-> Events:\n* cloud.example.org/lb reported 5m ago (x4 over 120m): quota exceeded"},
		"bare":   {[]corev1.Event{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(4 * time.Minute)}}}, "\n\n-> Events:\n* an unknown component reported 4m ago: "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Describe(test.events, "", noon); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDescribeIsBounded(t *testing.T) {
	var events []corev1.Event
	for i := range 5 {
		events = append(events, warning(fmt.Sprint(i), strings.Repeat("ü", 1000), 0, 0, 1))
	}
	if got := Describe(events, "", noon); len(got) > 2000 || strings.Contains(got, "\ufffd") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestDescribeIsStable(t *testing.T) {
	events := []corev1.Event{warning("a", "failed", 10*time.Minute, 3*time.Minute, 7)}
	if before, after := Describe(events, "", noon), Describe(events, "", noon.Add(50*time.Second)); before != after {
		t.Errorf("%q changed to %q within a minute", before, after)
	}
}

func TestLatest(t *testing.T) {
	events := []corev1.Event{
		warning("c", "3", 0, 3*time.Minute, 1), warning("b", "2", 0, time.Minute, 1), warning("a", "1", 0, time.Minute, 1),
		warning("d", "4", 0, 4*time.Minute, 1), warning("f", "6", 0, 6*time.Minute, 1), warning("e", "5", 0, 5*time.Minute, 1),
	}
	var got strings.Builder
	for _, event := range Latest(events) {
		got.WriteString(event.Message)
	}
	if got.String() != "12345" {
		t.Errorf("got the events %s, want the latest five, and those of the same time by name", got.String())
	}
}

func TestDescribeNamesOtherObjects(t *testing.T) {
	event := warning("a", "no such image", 3*time.Minute, 3*time.Minute, 1)
	event.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Name: "web-1", UID: "pod"}
	if got, want := Describe([]corev1.Event{event}, "deployment", noon), "\n\n-> Events:\n* service-controller reported of Pod web-1 3m ago: no such image"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Describe([]corev1.Event{event}, "pod", noon); strings.Contains(got, "web-1") {
		t.Errorf("an Event about the object itself is described as %q", got)
	}
}

func TestLatest_ReportsAnEventOnce(t *testing.T) {
	var events []corev1.Event
	for _, pod := range []string{"web-1", "web-2"} {
		event := warning(pod, "cannot pull the image of "+pod, 0, time.Minute, 1)
		event.InvolvedObject.Name = pod
		events = append(events, event)
	}
	for _, text := range []string{`cannot create "set-1-x"`, `(combined from similar events): cannot create "set-1-y"`} {
		event := warning(text, text, 0, time.Minute, 1)
		event.InvolvedObject.Name = "set-1"
		events = append(events, event)
	}
	if got := Latest(events); len(got) != 2 {
		t.Errorf("%d Events about the same problem are shown", len(got))
	}
}
