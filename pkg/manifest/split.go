package manifest

import (
	"bytes"
	"unicode/utf8"
)

// byteOrderMark may begin a text; it is not a part of it.
var byteOrderMark = []byte("\ufeff")

// splitYAML divides a stream into its documents. It sees the same separators as a YAML 1.1 parser: lines that begin with
// "---" or "...", wherever they stand, with every line break of YAML 1.1. What two readers would divide differently could
// be lost between them.
func splitYAML(content []byte) [][]byte {
	var documents [][]byte
	start := 0
	for line := 0; line < len(content); {
		next := line + lineLength(content[line:])
		switch {
		case isSeparator(content[line:], "---") && !onlyPreamble(content[start:line]):
			documents = append(documents, content[start:line])
			start = line
		case isSeparator(content[line:], "..."):
			documents = append(documents, content[start:line])
			start = next
		}
		line = next
	}
	return append(documents, content[start:])
}

// lineLength returns the length of the first line, with its line break.
func lineLength(content []byte) int {
	for i := 0; i < len(content); {
		char, size := rune(content[i]), 1
		if char >= utf8.RuneSelf {
			char, size = utf8.DecodeRune(content[i:])
		}
		i += size
		if isBreak(char) {
			if char == '\r' && i < len(content) && content[i] == '\n' {
				i++
			}
			return i
		}
	}
	return len(content)
}

func isBreak(char rune) bool {
	switch char {
	case '\n', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// isSeparator reports whether a line is the marker, alone or followed by white space.
func isSeparator(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(line, []byte(marker))
	if !found || len(rest) == 0 {
		return found
	}
	char, _ := utf8.DecodeRune(rest)
	return char == ' ' || char == '\t' || isBreak(char)
}

// onlyPreamble reports whether there is nothing but directives, comments and blank lines, which belong to the document
// that follows.
func onlyPreamble(content []byte) bool {
	for len(content) > 0 {
		length := lineLength(content)
		line := bytes.TrimSpace(content[:length])
		if len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
		content = content[length:]
	}
	return true
}
