package rotation

import (
	"testing"
	"time"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// TestTokensAreRenewed tests isRenewed with the values that the resource-manager and gardenlet write.
func TestTokensAreRenewed(t *testing.T) {
	at := func(when time.Duration) string { return now.Add(when).UTC().Format(time.RFC3339) }
	const renewal = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"of before":                {map[string]string{renewal: at(time.Hour)}, false},
		"of another rotation":      {map[string]string{renewal: at(time.Hour), annotationKeyName: "old"}, false},
		"asked for":                {map[string]string{renewal: at(0), annotationKeyName: "new"}, false},
		"asked for, not requested": {map[string]string{annotationKeyName: "new"}, false},
		"requested":                {map[string]string{renewal: at(time.Hour), annotationKeyName: "new"}, true},
	} {
		if isRenewed(test.annotations, "new", now) != test.want {
			t.Errorf("%s: %t", name, !test.want)
		}
	}
}
