package screen

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{CutEnd("abcdef", 4), "abc…"}, {CutEnd("abcd", 4), "abcd"}, {CutEnd("äöüß", 3), "äö…"}, {CutEnd("abc", 0), "abc"},
		{CutMiddle("abcdefgh", 5), "ab…gh"}, {CutMiddle("abcd", 4), "abcd"}, {CutMiddle("abcdef", 4), "ab…f"},
		{OneLine(" a\n\tb  c\x1b[31m"), "a b c[31m"}, {Harmless("a\x07b\r\nc\td\u009bx"), "ab\nc\tdx"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  []string
	}{
		{"one two three", 8, []string{"one two", "three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"averylongword x", 5, []string{"avery", "longw", "ord x"}},
		{"a\nb", 0, []string{"a", "b"}},
		{"", 5, []string{""}},
	} {
		if got := Wrap(test.text, test.width); !slices.Equal(got, test.want) {
			t.Errorf("%q in %d: %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

var wide = Table{
	Columns: []Column{{Header: "NAME", Least: 8, Middle: true}, {Header: "STATE"}, {Header: "AGE", Spare: 1}, {Header: "MESSAGE", Least: 10, Spare: 2}},
	Rows: [][]Cell{
		Text("a-name-that-is-rather-long", "Ready", "5m", ""),
		Text("short", "Unhealthy", "12d", "a message that is much too long for a terminal of some columns"),
	},
}

func TestPrintFits(t *testing.T) {
	for _, width := range []int{0, 120, 80, 60, 40, 30} {
		var out bytes.Buffer
		if err := (Screen{Writer: &out, Width: width}).Print(wide); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 3 {
			t.Errorf("width %d: %d lines", width, len(lines))
		}
		for _, line := range lines {
			if count := utf8.RuneCountInString(line); width > 0 && count > width {
				t.Errorf("width %d: a line has %d characters: %s", width, count, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("width %d: a line ends in spaces: %q", width, line)
			}
		}
		for _, wanted := range []string{"Ready", "Unhealthy"} {
			if !strings.Contains(out.String(), wanted) {
				t.Errorf("width %d: %s is missing:\n%s", width, wanted, &out)
			}
		}
		if fits := width == 0 || width == 120; fits && strings.Contains(out.String(), ellipsis) {
			t.Errorf("width %d: text is truncated:\n%s", width, &out)
		}
	}
}

func TestColours(t *testing.T) {
	table := Table{Columns: []Column{{Header: "A"}, {Header: "B"}}, Rows: [][]Cell{{{"x", Bad}, {"y", Plain}}}}
	var plain, coloured bytes.Buffer
	if err := (Screen{Writer: &plain}).Print(table); err != nil {
		t.Fatal(err)
	}
	if err := (Screen{Writer: &coloured, Colours: true}).Print(table); err != nil {
		t.Fatal(err)
	}
	if plain.String() != "A  B\nx  y\n" {
		t.Errorf("%q", &plain)
	}
	if want := "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[31mx\x1b[0m  y\n"; coloured.String() != want {
		t.Errorf("%q, want %q", &coloured, want)
	}
	if screen := Of(&plain); screen.Colours || screen.Width != 0 {
		t.Errorf("a buffer counts as a terminal: %+v", screen)
	}
}

func TestPrintTrees(t *testing.T) {
	var out bytes.Buffer
	tree := Node{Name: Cell{Text: "root"}, Cells: Text("1"), Children: []Node{
		{Name: Cell{Text: "a"}, Cells: Text("2"), Children: []Node{{Name: Cell{Text: "b"}, Cells: Text("3")}}},
		{Name: Cell{Text: "c"}, Cells: Text("4")},
	}}
	if err := (Screen{Writer: &out}).PrintTrees([]Column{{Header: "OBJECT"}, {Header: "N"}}, []Node{tree, {Name: Cell{Text: "next"}, Cells: Text("5")}}); err != nil {
		t.Fatal(err)
	}
	want := "OBJECT   N\nroot     1\n├─ a     2\n│  └─ b  3\n└─ c     4\n\nnext     5\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
