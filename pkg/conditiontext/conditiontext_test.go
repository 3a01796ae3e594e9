package conditiontext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStable(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		`create "a:b->c": refused`: `create "a:b->c": refused`,
		"read tcp 127.0.0.1:41000->127.0.0.1:443: connection reset":             "read tcp 127.0.0.1:443: connection reset",
		"read tcp [::1]:41000->[::1]:443: i/o timeout":                          "read tcp [::1]:443: i/o timeout",
		"dial tcp 10.0.0.1:443: connect: connection refused":                    "dial tcp 10.0.0.1:443: connect: connection refused",
		"server sent GOAWAY and closed; LastStreamID=1999, ErrCode=NO_ERROR":    "server sent GOAWAY and closed; ErrCode=NO_ERROR",
		"certificate has expired: current time 2026-01-02T12:00:00Z is after x": "certificate has expired: current time is after x",
	} {
		if got := Stable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestShortenCutsNoCharacterInTwo(t *testing.T) {
	for shift := range 4 {
		got := Shorten(strings.Repeat("x", shift)+strings.Repeat("😀", 100), 50)
		if len(got) > 50 || len(got) < 50-len("😀") || !utf8.ValidString(got) || !strings.HasSuffix(got, " …") {
			t.Errorf("shifted by %d: %q", shift, got)
		}
	}
	if got := Shorten("exact", 5); got != "exact" {
		t.Errorf("got %q", got)
	}
}
