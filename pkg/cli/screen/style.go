// Package screen lays texts out for people: tables and trees that fit the terminal, colours where there are any.
package screen

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Style is what a text means, which its colour shows.
type Style int

// The styles.
const (
	Plain Style = iota
	// Good is for what is as it should be.
	Good
	// Busy is for what is under way.
	Busy
	// Bad is for what is wrong.
	Bad
	// Faint is for what matters least.
	Faint
	// Strong is for headings.
	Strong
)

// codes are the ANSI sequences (ECMA-48, Select Graphic Rendition) of the styles.
var codes = map[Style]string{Good: "32", Busy: "33", Bad: "31", Faint: "2", Strong: "1"}

// Screen is what is written to.
type Screen struct {
	io.Writer
	// Width is how many characters a line may have; 0 for any number.
	Width int
	// Colours says whether texts are coloured.
	Colours bool
}

// Of returns the screen of a writer: lines are cut to the width of a terminal only, and colours are for terminals whose user
// wants them (https://no-color.org).
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

// IsTerminal reports whether a person looks at the screen, whatever is known of its size.
func (s Screen) IsTerminal() bool {
	_, is := terminalOf(s.Writer)
	return is
}

// Paint returns a text in the colour of a style, if there are colours.
func (s Screen) Paint(style Style, text string) string {
	code, coloured := codes[style]
	if !s.Colours || !coloured || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
