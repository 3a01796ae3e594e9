package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kind is the kind of source of a text.
type kind string

const (
	inDocs     kind = "docs"
	inComments kind = "comments"
	inStrings  kind = "strings"
)

// text is a piece of prose.
type text struct {
	kind kind
	// line is the number of its first line.
	line    int
	content string
}

// textsOf returns the texts of a file.
func textsOf(file string, content []byte) ([]text, error) {
	if filepath.Ext(file) == ".md" {
		return []text{{kind: inDocs, line: 1, content: withoutCode(string(content))}}, nil
	}
	texts, err := textsOfGo(file, content)
	if strings.HasSuffix(file, "_test.go") {
		// Strings of tests are names of rows, fixtures and expected texts.
		texts = slices.DeleteFunc(texts, func(t text) bool { return t.kind == inStrings })
	}
	return texts, err
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	target     = regexp.MustCompile(`\]\([^)\n]*\)`)
)

// withoutCode removes code blocks, inline code and link targets from Markdown, and keeps all line breaks.
func withoutCode(markdown string) string {
	lines := strings.Split(markdown, "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced {
			lines[i] = ""
			continue
		}
		lines[i] = target.ReplaceAllString(inlineCode.ReplaceAllString(line, "`"), "]")
	}
	return strings.Join(lines, "\n")
}

// textsOfGo returns the comments of a Go file and its strings of more than one word.
func textsOfGo(file string, content []byte) ([]text, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var texts []text
	for _, group := range parsed.Comments {
		lines := make([]string, 0, len(group.List))
		for _, comment := range group.List {
			lines = append(lines, inlineCode.ReplaceAllString(strings.TrimPrefix(comment.Text, "//"), "`"))
		}
		texts = append(texts, text{kind: inComments, line: positions.Position(group.Pos()).Line, content: strings.Join(lines, "\n")})
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if value, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(value, " ") {
			texts = append(texts, text{kind: inStrings, line: positions.Position(literal.Pos()).Line, content: value})
		}
		return true
	})
	return texts, nil
}
