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
	// Directory is where they are run.
	Directory string
	// Kubeconfig is the file that kubectl and Helm use, Path what is put before the PATH.
	Kubeconfig, Path string
}

// answersNo matches commands that end with 1 if they have found something, or the answer is no.
var answersNo = regexp.MustCompile(`^kubectl (mr (diff|migrate|why|owner)|auth can-i)\b`)

// Run runs lines in one shell and returns what they print. It fails the test if one of them fails.
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

// Page runs the blocks of a page one after the other.
type Page struct {
	testing.TB
	Shell
	blocks []Block
}

// Open returns a page whose commands are to be run in a shell. Those that are not to be run are left out.
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

// Next runs the next block, which has to be in a section, and returns what it prints.
func (p *Page) Next(section string) string {
	p.Helper()
	if len(p.blocks) == 0 || p.blocks[0].Section != section {
		p.Fatalf("the next block is to be in the section %q: %+v", section, p.blocks)
	}
	block := p.blocks[0]
	p.blocks = p.blocks[1:]
	return p.Run(p, block.Commands)
}

// End checks that all blocks were run.
func (p *Page) End() {
	p.Helper()
	if len(p.blocks) > 0 {
		p.Errorf("nobody runs %+v", p.blocks)
	}
}

// Programs makes a directory with programs that are this test's own binary, which tells by the variable of Program which of them it is to
// be: its TestMain has to look.
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

// Program returns which of the Programs this process is to be; empty if it is to run tests.
func Program() string { return os.Getenv(program) }
