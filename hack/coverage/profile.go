package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// module is the prefix of the import paths of all packages.
const module = "github.com/trellis-k8s/trellis/"

// generated matches generated files.
const generated = "zz_generated"

// place is the position of consecutive statements.
type place struct {
	// file is the path below the root of the repository.
	file                               string
	line, column, lastLine, lastColumn int
}

// block is the entry of a profile for consecutive statements.
type block struct {
	statements int
	covered    bool
}

// profileLine matches "<file>:<line>.<column>,<line>.<column> <statements> <count>".
var profileLine = regexp.MustCompile(`^(\S+):(\d+)\.(\d+),(\d+)\.(\d+) (\d+) (\d+)$`)

// read parses a profile. Statements that several processes report are covered if one of the processes executed them.
func read(profile io.Reader) (map[place]block, error) {
	blocks := map[place]block{}
	scanner := bufio.NewScanner(profile)
	for scanner.Scan() {
		if strings.HasPrefix(scanner.Text(), "mode: ") {
			continue
		}
		match := profileLine.FindStringSubmatch(scanner.Text())
		if match == nil {
			return nil, fmt.Errorf("%q is not a line of a coverage profile", scanner.Text())
		}
		file := strings.TrimPrefix(match[1], module)
		if strings.HasPrefix(path.Base(file), generated) {
			continue
		}
		at := place{file, number(match[2]), number(match[3]), number(match[4]), number(match[5])}
		blocks[at] = block{number(match[6]), blocks[at].covered || match[7] != "0"}
	}
	return blocks, scanner.Err()
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// table returns the share of covered statements by package, in Markdown.
func table(blocks map[place]block) string {
	type share struct{ covered, all int }
	var total share
	shares := map[string]share{}
	for at, block := range blocks {
		s := shares[path.Dir(at.file)]
		s.all, total.all = s.all+block.statements, total.all+block.statements
		if block.covered {
			s.covered, total.covered = s.covered+block.statements, total.covered+block.statements
		}
		shares[path.Dir(at.file)] = s
	}
	var text strings.Builder
	text.WriteString("| package | statements | run | share |\n|---|---|---|---|\n")
	write := func(name string, s share) {
		fmt.Fprintf(&text, "| %s | %d | %d | %.1f %% |\n", name, s.all, s.covered, 100*float64(s.covered)/float64(max(s.all, 1)))
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		write(name, shares[name])
	}
	write("all", total)
	return text.String()
}

// missing returns the positions of uncovered statements in the packages that match, one per line.
func missing(blocks map[place]block, listed *regexp.Regexp) string {
	var places []place
	for at, block := range blocks {
		if !block.covered && block.statements > 0 && listed.MatchString(path.Dir(at.file)) {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var text strings.Builder
	for _, at := range places {
		fmt.Fprintf(&text, "%s:%d-%d (%d)\n", at.file, at.line, at.lastLine, blocks[at].statements)
	}
	return text.String()
}
