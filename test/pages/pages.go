// Package pages finds the commands that the documentation shows, and runs them. Its inventory says which test runs those of which page, and
// which are not run, and why.
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
	// Language is sh, or console for commands with what they print.
	Language string
	// Commands are its lines, those alone that are typed.
	Commands []string
}

var (
	headings = regexp.MustCompile(`^#{1,6} (.+)$`)
	fences   = regexp.MustCompile("^```(sh|console)$")
	// inline matches command lines in sentences: a program with an argument.
	inline = regexp.MustCompile("`((?:kubectl|helm|argocd|flux|promtool|openssl|bin/[a-z-]+) [^`]*)`")
	// mention matches a command's name without anything to do it to.
	mention = regexp.MustCompile(`^(kubectl|helm)( mr)?( [a-z]+| auth can-i| rollout (undo|restart)| describe [a-z]+| create -k| migrate --back|` +
		` get --show-managed-fields)?$`)
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
			indent = line[:len(line)-len(trimmed)] // as in a list
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

// Inline returns the command lines in the sentences and tables of a page, each once. A name of a command is none.
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
