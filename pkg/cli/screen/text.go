package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// OneLine puts a text on one line, without control characters, because texts of objects are not trusted.
func OneLine(text string) string {
	return strings.Join(strings.Fields(Harmless(text)), " ")
}

// Harmless removes control characters, except newlines and tabs, from a text.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, text)
}

// Count returns a number with a noun, such as "1 object" or "2 objects".
func Count(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// CutEnd shortens a text to a maximum of characters by removing its end.
func CutEnd(text string, width int) string {
	if characters := []rune(text); len(characters) > width && width > 0 {
		return string(characters[:width-1]) + ellipsis
	}
	return text
}

// CutMiddle shortens a text to a maximum of characters by removing its middle, because names often differ at their
// ends.
func CutMiddle(text string, width int) string {
	characters := []rune(text)
	if len(characters) <= width || width <= 0 {
		return text
	}
	head := width / 2
	tail := width - head - 1
	return string(characters[:head]) + ellipsis + string(characters[len(characters)-tail:])
}

// Wrap breaks a text into lines of at most width characters, at spaces if possible. It keeps the newlines of the
// text. If the width
// is 0, Wrap does not break lines.
func Wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(Harmless(text), "\n"), "\n") {
		lines = append(lines, wrapLine(line, width)...)
	}
	return lines
}

func wrapLine(line string, width int) []string {
	var lines []string
	for width > 0 && utf8.RuneCountInString(line) > width {
		characters := []rune(line)
		at := width
		for at > 0 && characters[at] != ' ' {
			at--
		}
		if at == 0 { // one long word
			at = width
		}
		lines = append(lines, strings.TrimRight(string(characters[:at]), " "))
		line = strings.TrimLeft(string(characters[at:]), " ")
	}
	return append(lines, line)
}

// Paragraph prints a text with an indent, wrapped to the width of the screen.
func (s Screen) Paragraph(indent string, style Style, text string) error {
	width := 0
	if s.Width > 0 {
		width = max(s.Width-utf8.RuneCountInString(indent), 20)
	}
	for _, line := range Wrap(text, width) {
		if _, err := s.Write([]byte(strings.TrimRight(indent+s.Paint(style, line), " ") + "\n")); err != nil {
			return err
		}
	}
	return nil
}
