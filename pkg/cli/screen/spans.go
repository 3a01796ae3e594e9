package screen

import (
	"bytes"
	"strings"
)

// Span is a part of a line, in one style.
type Span struct {
	Text  string
	Style Style
}

// Lines returns the lines that a function writes to a screen of this width. It is for programs that control the
// terminal themselves.
func Lines(width int, write func(Screen) error) ([][]Span, error) {
	var written bytes.Buffer
	if err := write(Screen{Writer: &written, Width: width, Colours: true}); err != nil {
		return nil, err
	}
	var lines [][]Span
	for line := range strings.Lines(written.String()) {
		lines = append(lines, spans(strings.TrimSuffix(line, "\n")))
	}
	return lines, nil
}

// styles are the styles by their ANSI codes.
var styles = func() map[string]Style {
	styles := make(map[string]Style, len(codes))
	for style, code := range codes {
		styles[code] = style
	}
	return styles
}()

// spans splits a line that consists of results of Paint. The texts contain no escape characters, because Harmless
// removes them.
func spans(line string) []Span {
	var found []Span
	add := func(text string, style Style) {
		if text = Harmless(text); text != "" {
			found = append(found, Span{text, style})
		}
	}
	for {
		before, rest, painted := strings.Cut(line, "\x1b[")
		add(before, Plain)
		if !painted {
			return found
		}
		code, rest, _ := strings.Cut(rest, "m")
		text, after, _ := strings.Cut(rest, "\x1b[0m")
		add(text, styles[code])
		line = after
	}
}
