package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// OneLine puts a text on one line, without characters that steer a terminal: what objects say comes from others.
func OneLine(text string) string {
	return strings.Join(strings.Fields(Harmless(text)), " ")
}

// Harmless returns a text without characters that steer a terminal, other than line ends and tabs.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, text)
}

// CutEnd shortens a text to a maximum of characters by removing its end.
func CutEnd(text string, width int) string {
	if characters := []rune(text); len(characters) > width && width > 0 {
		return string(characters[:width-1]) + ellipsis
	}
	return text
}

// CutMiddle shortens a text to a maximum of characters by removing its middle: names differ at both ends.
func CutMiddle(text string, width int) string {
	characters := []rune(text)
	if len(characters) <= width || width <= 0 {
		return text
	}
	head := width / 2
	tail := width - head - 1
	return string(characters[:head]) + ellipsis + string(characters[len(characters)-tail:])
}

// Wrap breaks a text into lines of at most width characters, at spaces where there are any. Its own line ends are kept. A width
// of 0 leaves lines as they are.
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

// Paragraph writes lines, each after an indent, broken to the width of the screen.
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
