package controller

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestClockCheck checks that a clock that differs by more than a minute, in any direction, is refused, and a time that is not known.
func TestClockCheck(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		date string
		want bool
	}{
		"equal":           {now.Format(http.TimeFormat), true},
		"a minute behind": {now.Add(-time.Minute).Format(http.TimeFormat), true},
		"a day behind":    {now.Add(-24 * time.Hour).Format(http.TimeFormat), false},
		"an hour ahead":   {now.Add(time.Hour).Format(http.TimeFormat), false},
		"no date":         {"", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = []string{test.date}
		}))
		err := clockCheck(&rest.Config{Host: server.URL}, server.Client())(t.Context(), now)
		server.Close()
		if (err == nil) != test.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
