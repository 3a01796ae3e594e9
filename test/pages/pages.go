// Package pages finds the commands in the documentation and runs them. Its inventory names the test that runs the
// commands of each page, and the commands that are not run, with the reasons.
package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// Block is a block of commands.
type Block struct {
	// Section is the heading above it.
	Section string
	// Language is sh, or console for commands with their output.
	Language string
	// Commands are the lines with commands, without output.
	Commands []string
}

var (
	headings = regexp.MustCompile(`^#{1,6} (.+)$`)
	fences   = regexp.MustCompile("^```(sh|console)$")
	// inline matches command lines in sentences: a program with an argument.
	inline = regexp.MustCompile("`((?:kubectl|helm|argocd|flux|promtool|openssl|bin/[a-z-]+) [^`]*)`")
	// mention matches the name of a command without arguments.
	mention = regexp.MustCompile(`^(kubectl|helm)( mr)?( [a-z]+| auth can-i| rollout (undo|restart)|` +
		` describe [a-z]+| create -k| migrate --back| get --show-managed-fields)?$`)
)

// All returns the paths of all pages, relative to the root of the repository.
func All(tb testing.TB) []string {
	tb.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "examples/*/*.md", "charts/*/*.md", "config/*.md", "hack/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root(tb), pattern))
		if err != nil {
			tb.Fatal(err)
		}
		for _, path := range paths {
			relative, err := filepath.Rel(root(tb), path)
			if err != nil {
				tb.Fatal(err)
			}
			found = append(found, filepath.ToSlash(relative))
		}
	}
	return found
}

func root(tb testing.TB) string {
	tb.Helper()
	path, err := controlplane.RepositoryRoot()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func read(tb testing.TB, page string) string {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(root(tb), filepath.FromSlash(page)))
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// Blocks returns the blocks of commands of a page.
func Blocks(tb testing.TB, page string) []Block {
	tb.Helper()
	return blocksIn(read(tb, page))
}

func blocksIn(content string) (blocks []Block) {
	section, indent, inside, fenced := "", "", false, false
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		if trimmed := strings.TrimLeft(line, " "); strings.HasPrefix(trimmed, "```") && !fenced {
			indent = line[:len(line)-len(trimmed)] // in a list
		}
		line = strings.TrimPrefix(line, indent)
		switch match := fences.FindStringSubmatch(line); {
		case match != nil && !fenced:
			blocks = append(blocks, Block{Section: section, Language: match[1]})
			inside, fenced = true, true
		case strings.HasPrefix(line, "```"):
			inside, fenced = false, !fenced
			if !fenced {
				indent = ""
			}
		case inside:
			block := &blocks[len(blocks)-1]
			command, typed := strings.CutPrefix(line, "$ ")
			if typed || block.Language == "sh" {
				block.Commands = append(block.Commands, command)
			}
		case !fenced && headings.MatchString(line):
			section = headings.FindStringSubmatch(line)[1]
		}
	}
	return blocks
}

// Inline returns each command line in the sentences and tables of a page once. Names of commands do not count.
func Inline(tb testing.TB, page string) []string {
	tb.Helper()
	return inlineIn(read(tb, page))
}

var codeBlock = regexp.MustCompile("(?s)(?:^|\n) *```.*?\n *```")

func inlineIn(content string) (commands []string) {
	text := codeBlock.ReplaceAllString(content, "")
	for _, match := range inline.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
		if command := strings.ReplaceAll(match[1], `\|`, "|"); !mention.MatchString(command) && !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	return commands
}
