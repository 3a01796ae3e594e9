// Package screen formats text: tables and trees that fit the terminal, and colours if the terminal has them.
package screen

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Style is the meaning of a text, which its colour shows.
type Style int

// The styles.
const (
	Plain Style = iota
	// Good is for the desired state.
	Good
	// Busy is for work in progress.
	Busy
	// Bad is for problems.
	Bad
	// Faint is for less important text.
	Faint
	// Strong is for headings.
	Strong
)

// codes are the ANSI sequences (ECMA-48, Select Graphic Rendition) of the styles.
var codes = map[Style]string{Good: "32", Busy: "33", Bad: "31", Faint: "2", Strong: "1"}

// Screen is the output of a command.
type Screen struct {
	io.Writer
	// Width is the maximum number of characters of a line. It is 0 for no limit.
	Width int
	// Colours enables colours.
	Colours bool
}

// Of returns the screen of a writer. Only terminals limit the width of lines. Only terminals have colours, unless the
// user disables
// them (https://no-color.org).
func Of(writer io.Writer) Screen {
	file, is := terminalOf(writer)
	if !is {
		return Screen{Writer: writer}
	}
	screen := Screen{Writer: writer, Colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		screen.Width = width
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		screen.Width = columns
	}
	return screen
}

func terminalOf(writer io.Writer) (file *os.File, is bool) {
	file, is = writer.(*os.File)
	return file, is && term.IsTerminal(int(file.Fd()))
}

// IsTerminal reports whether the output is a terminal, even if its size is unknown.
func (s Screen) IsTerminal() bool {
	_, is := terminalOf(s.Writer)
	return is
}

// Paint returns a text in the colour of a style, if the screen has colours.
func (s Screen) Paint(style Style, text string) string {
	code, coloured := codes[style]
	if !s.Colours || !coloured || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
