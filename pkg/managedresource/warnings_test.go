package managedresource

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestWarningsAreRemembered(t *testing.T) {
	now := time.Unix(1, 0)
	w := newRecentWarnings()
	w.set("a", []corev1.Event{{Message: "failed"}}, now)
	if events, known := w.get("a", now.Add(warningsInterval-time.Second)); !known || len(events) != 1 {
		t.Error("the events are read again immediately")
	}
	if _, known := w.get("a", now.Add(warningsInterval)); known {
		t.Error("the events are never read again")
	}
	w.set("b", nil, now.Add(warningsInterval))
	if _, kept := w.byUID["a"]; kept {
		t.Error("outdated events are kept forever")
	}
}
