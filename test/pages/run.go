package pages

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Shell runs commands.
type Shell struct {
	// Directory is the working directory of the commands.
	Directory string
	// Kubeconfig is the file that kubectl and Helm use. Path is prepended to the PATH.
	Kubeconfig, Path string
}

// answersNo matches commands that exit with 1 if they have found something or the answer is negative.
var answersNo = regexp.MustCompile(`^kubectl (mr (diff|migrate|why|owner)|auth can-i)\b`)

// Run runs lines in one shell and returns their output. It fails the test if one of them fails.
func (s Shell) Run(tb testing.TB, lines []string) string {
	tb.Helper()
	var script strings.Builder
	for _, line := range lines {
		if answersNo.MatchString(line) {
			line, _, _ = strings.Cut(line, "  #")
			line += " || [ $? = 1 ]"
		}
		script.WriteString(line + "\n")
	}
	command := exec.CommandContext(tb.Context(), "bash", "-euo", "pipefail", "-c", script.String()) //nolint:gosec // of the pages
	command.Dir = s.Directory
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "PATH="+s.Path+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	if err != nil {
		tb.Fatalf("%v\n%s\n%s", err, script.String(), output)
	}
	return string(output)
}

// Page runs the blocks of a page in sequence.
type Page struct {
	testing.TB
	Shell
	blocks []Block
}

// Open returns a page whose commands run in a shell. It omits the commands that the inventory excludes.
func Open(tb testing.TB, page string, shell Shell) *Page {
	tb.Helper()
	p := &Page{TB: tb, Shell: shell}
	for _, block := range Blocks(tb, page) {
		var commands []string
		for _, command := range block.Commands {
			if Why(command) == "" {
				commands = append(commands, command)
			}
		}
		if block.Commands = commands; len(commands) > 0 {
			p.blocks = append(p.blocks, block)
		}
	}
	return p
}

// Next runs the next block, which must be in the given section, and returns its output.
func (p *Page) Next(section string) string {
	p.Helper()
	if len(p.blocks) == 0 || p.blocks[0].Section != section {
		p.Fatalf("the next block is not in the section %q: %+v", section, p.blocks)
	}
	block := p.blocks[0]
	p.blocks = p.blocks[1:]
	return p.Run(p, block.Commands)
}

// End checks that all blocks were run.
func (p *Page) End() {
	p.Helper()
	if len(p.blocks) > 0 {
		p.Errorf("these blocks were not run: %+v", p.blocks)
	}
}

// Programs creates a directory with programs that run this test's own binary. An environment variable holds the
// name of the program, which TestMain must read with Program.
func Programs(tb testing.TB, names ...string) string {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	directory := tb.TempDir()
	for _, name := range names {
		script := "#!/bin/sh\n" + program + "=" + name + " exec '" + self + "' \"$@\"\n"
		if err := os.WriteFile(directory+"/"+name, []byte(script), 0o700); err != nil { //nolint:gosec // a program
			tb.Fatal(err)
		}
	}
	return directory
}

const program = "TRELLIS_TEST_PROGRAM"

// Program returns which of the Programs this process is, or an empty string if it runs tests.
func Program() string { return os.Getenv(program) }
