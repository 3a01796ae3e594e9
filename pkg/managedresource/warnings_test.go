package managedresource

import (
	"testing"
	"time"
)

func TestWarningsAreRemembered(t *testing.T) {
	now := time.Unix(1, 0)
	w := newRecentWarnings()
	w.set("a", "failed", now)
	if text, known := w.get("a", now.Add(warningsInterval-time.Second)); !known || text != "failed" {
		t.Error("the cause is read again immediately")
	}
	if _, known := w.get("a", now.Add(warningsInterval)); known {
		t.Error("the cause is never read again")
	}
	w.set("b", "", now.Add(warningsInterval))
	if _, kept := w.byUID["a"]; kept {
		t.Error("outdated causes are kept forever")
	}
}
