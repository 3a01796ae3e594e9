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

// Lines returns what a function writes to a screen of a width, line by line, for programs that put lines on the terminal themselves.
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

// styles are the styles of the ANSI sequences.
var styles = func() map[string]Style {
	styles := make(map[string]Style, len(codes))
	for style, code := range codes {
		styles[code] = style
	}
	return styles
}()

// spans takes a line apart that consists of what Paint returned. Texts have no escape characters, which Harmless leaves out.
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
