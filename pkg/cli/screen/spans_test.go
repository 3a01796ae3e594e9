package screen

import (
	"fmt"
	"slices"
	"testing"
)

func TestLines(t *testing.T) {
	lines, err := Lines(40, func(s Screen) error {
		err := s.Print(Table{
			Columns: []Column{{Header: "NAME"}, {Header: "STATE"}},
			Rows:    [][]Cell{{{Text: "a\x1b[2Jb"}, {"Failed", Bad}}, {{Text: "c"}, {"Ready", Good}}},
		})
		if err == nil {
			err = s.Paragraph("  ", Faint, "\x1b]0;title\x07\n\nlast")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]Span{
		{{"NAME", Strong}, {"   ", Plain}, {"STATE", Strong}},
		{{"a[2Jb  ", Plain}, {"Failed", Bad}},
		{{"c      ", Plain}, {"Ready", Good}},
		{{"  ", Plain}, {"]0;title", Faint}},
		nil,
		{{"  ", Plain}, {"last", Faint}},
	}
	if !slices.EqualFunc(lines, want, slices.Equal) {
		t.Errorf("got %q\nwant %q", fmt.Sprint(lines), fmt.Sprint(want))
	}
}

// FuzzSpans checks that no terminal control characters remain, whatever the line contains.
func FuzzSpans(f *testing.F) {
	for _, line := range []string{"", "plain", "\x1b[31mred\x1b[0m", "\x1b[31m\x1b[", "\x1b[2Ja\x1b[0mb", "\u009b31m"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, span := range spans(line) {
			if span.Text != Harmless(span.Text) || span.Text == "" {
				t.Errorf("%q remains of %q", span.Text, line)
			}
		}
	})
}
