package manifest

import (
	"bytes"
	"unicode/utf8"
)

// byteOrderMark may precede a text and is not part of it.
var byteOrderMark = []byte("\ufeff")

// splitYAML splits a stream into its documents. It recognizes the same separators as a YAML 1.1 parser: lines that
// start with "---" or "...", anywhere in the content, with any line break of YAML 1.1. If it split the stream in a
// different way than the parser, content could be lost.
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

// lineLength returns the length of the first line, including its line break.
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

// isSeparator reports whether a line is the marker, optionally followed by white space and other content.
func isSeparator(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(line, []byte(marker))
	if !found || len(rest) == 0 {
		return found
	}
	char, _ := utf8.DecodeRune(rest)
	return char == ' ' || char == '\t' || isBreak(char)
}

// onlyPreamble reports whether the content consists of directives, comments and blank lines, which belong to the
// following document.
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
