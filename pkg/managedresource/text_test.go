package managedresource

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

func TestNames(t *testing.T) {
	changesOf := func(count int) []change {
		var changes []change
		for i := count; i > 0; i-- {
			changes = append(changes, unwanted(fmt.Sprint("x", i), actionDelete, nil))
		}
		return changes
	}
	const of = "v1/ConfigMap/a/x"
	for count, want := range map[int]string{
		1: "1 (" + of + "1)",
		2: "2 (" + of + "1, " + of + "2)",
		5: "5 (" + of + "1, " + of + "2, " + of + "3, " + of + "4, " + of + "5)",
		6: "6 (" + of + "1, " + of + "2, " + of + "3, " + of + "4, " + of + "5, …)",
		9: "9 (" + of + "1, " + of + "2, " + of + "3, " + of + "4, " + of + "5, …)",
	} {
		if got := names(changesOf(count)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShortenFitsAnEvent(t *testing.T) {
	const greatestNote = 1024 // of an events.k8s.io/v1 Event
	exact := strings.Repeat("x", 900)
	if got := conditiontext.ForEvent(exact); got != exact {
		t.Errorf("a text of 900 bytes was truncated to %d", len(got))
	}
	for _, character := range []string{"x", "é", "…", "😀"} {
		for shift := range len(character) {
			got := conditiontext.ForEvent(strings.Repeat("x", shift) + strings.Repeat(character, 1000))
			if len("Created ")+len(got) > greatestNote || len(got) < 890 {
				t.Errorf("%q shifted by %d: got %d bytes, want about 900", character, shift, len(got))
			}
			if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || !strings.HasSuffix(got, " …") {
				t.Errorf("%q shifted by %d: the text ends with %q", character, shift, got[len(got)-8:])
			}
		}
	}
}
