package managedresource

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

func TestDescribeWarnings(t *testing.T) {
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
		"bare":   {[]corev1.Event{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(4 * time.Minute)}}}, "\n\n-> Events:\n* somebody reported 4m ago: "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describeWarnings(test.events, noon); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDescribeWarningsIsBounded(t *testing.T) {
	var events []corev1.Event
	for i := range 5 {
		events = append(events, warning(fmt.Sprint(i), strings.Repeat("ü", 1000), 0, 0, 1))
	}
	if got := describeWarnings(events, noon); len(got) > 2000 || strings.Contains(got, "\ufffd") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestDescribeWarningsIsStable(t *testing.T) {
	events := []corev1.Event{warning("a", "failed", 10*time.Minute, 3*time.Minute, 7)}
	if before, after := describeWarnings(events, noon), describeWarnings(events, noon.Add(50*time.Second)); before != after {
		t.Errorf("%q became %q within a minute", before, after)
	}
}

func TestLatestWarnings(t *testing.T) {
	events := []corev1.Event{
		warning("c", "3", 0, 3*time.Minute, 1), warning("b", "2", 0, time.Minute, 1), warning("a", "1", 0, time.Minute, 1),
		warning("d", "4", 0, 4*time.Minute, 1), warning("f", "6", 0, 6*time.Minute, 1), warning("e", "5", 0, 5*time.Minute, 1),
	}
	var got strings.Builder
	for _, event := range latestWarnings(events) {
		got.WriteString(event.Message)
	}
	if got.String() != "12345" {
		t.Errorf("got the events %s, want the latest five, those of one time by name", got.String())
	}
}

func TestWarningsAreRemembered(t *testing.T) {
	w := newWarnings()
	w.set("a", latestWarnings([]corev1.Event{warning("a", "failed", 0, 0, 1)}), noon)
	if events, known := w.get("a", noon.Add(warningsInterval-time.Second)); !known || len(events) != 1 {
		t.Error("the events are read again at once")
	}
	if _, known := w.get("a", noon.Add(warningsInterval)); known {
		t.Error("the events are never read again")
	}
	w.set("b", nil, noon.Add(warningsInterval))
	if _, kept := w.byUID["a"]; kept {
		t.Error("outdated events are kept for ever")
	}
}
