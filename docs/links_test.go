package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	anyLink   = regexp.MustCompile(`\[[^\]]*\]\(([^()\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	codeBlock = regexp.MustCompile("(?s)(?:^|\n) *```.*?\n *```")
	inTicks   = regexp.MustCompile("`[^`\n]*`")
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
	shell     = regexp.MustCompile("(?s)(?:^|\n) *```(?:sh|console)\n(.*?\n) *```")
	goTest    = regexp.MustCompile(`go test (?:-C )?(?:\./)?(\S+)`)
	runs      = regexp.MustCompile(`-run '?\^?(\w+)`)
	ownFlag   = regexp.MustCompile(` -((?:webhooks|faults|trouble|monitoring|large|manifests|update)[\w.]*)`)
	ownPath   = regexp.MustCompile(`(?:^|[\s=])((?:examples|config|docs|hack|test)/[\w./-]+)`)
	mrCommand = regexp.MustCompile(`kubectl[ -]mr ([a-z]+)`)
)

// programs of the repository, in commands, with the directories of their flags.
var programs = map[string]string{
	"bin/bench ": "../test/bench", "BENCHFLAGS=": "../test/bench", "bin/bench-api ": "../test/bench-api", "BENCHAPIFLAGS=": "../test/bench-api", "bin/resource-manager ": "../cmd/resource-manager/app",
	"go run ./hack/roundtrip ": "../hack/roundtrip", "bin/demo ": "../hack/demo",
}

// commandLine is the package with the flags of all programs that read a configuration file.
const commandLine = "../pkg/program"

var longFlag = regexp.MustCompile(`\s'?--([a-z][\w-]*)`)

// TestLinks checks that every relative link of a page refers to a file of the repository, and its anchor to a
// heading there.
func TestLinks(t *testing.T) {
	links := 0
	for page, content := range pages(t) {
		text := inTicks.ReplaceAllString(codeBlock.ReplaceAllString(content, ""), "``")
		for _, match := range anyLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(match[1], "#")
			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}
			target, err := os.ReadFile(path)
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() && anchor == "" {
				continue
			}
			if err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			} else if anchor != "" && !slices.Contains(anchors(string(target)), anchor) {
				t.Errorf("%s links to %s: the heading does not exist", page, match[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("found only %d links", links)
	}
}

// anchors returns the anchors that forges generate for the headings of a page.
func anchors(content string) []string {
	var found []string
	times := map[string]int{}
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(content, ""), -1) {
		text := anyLink.ReplaceAllStringFunc(match[1], func(link string) string { return link[1:strings.Index(link, "]")] })
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		if times[slug]++; times[slug] > 1 {
			slug = fmt.Sprintf("%s-%d", slug, times[slug]-1)
		}
		found = append(found, slug)
	}
	return found
}

func TestAnchors(t *testing.T) {
	got := anchors("# One, *two* & `three`\n```sh\n# no\n```\n## A [link](x.md)\n## A link\n")
	if want := []string{"one-two--three", "a-link", "a-link-1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCommandsExist checks that everything named in blocks of commands exists: targets of the Makefile, packages
// and names of tests, their flags, files and commands of kubectl mr. test/cli also runs the commands of cli.md and
// tutorial.md.
func TestCommandsExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tests, commands := testsBelow(t, ".."), 0
	for page, content := range pages(t) {
		for _, block := range shell.FindAllStringSubmatch(content, -1) {
			for line := range strings.Lines(block[1]) {
				commands++
				for _, problem := range problemsOf(line, string(makefile), tests) {
					t.Errorf("%s: %s: %s", page, strings.TrimSpace(line), problem)
				}
			}
		}
	}
	if commands < 50 {
		t.Errorf("found only %d lines of commands", commands)
	}
}

func problemsOf(line, makefile, tests string) (problems []string) {
	line, _, _ = strings.Cut(line, "  #")
	for _, match := range makeTarget.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(makefile, "\n"+match[1]+":") {
			problems = append(problems, "make has no target "+match[1])
		}
	}
	if match := goTest.FindStringSubmatch(line); len(match) > 1 && match[1] != "./..." {
		directory := filepath.Join("..", strings.TrimSuffix(match[1], "/..."))
		if _, err := os.Stat(directory); err != nil {
			problems = append(problems, err.Error())
		}
		if name := runs.FindStringSubmatch(line); len(name) > 1 && name[1] != "x" && !exists(name[1]+"…", tests) {
			problems = append(problems, "no test has the name "+name[1])
		}
		for _, own := range ownFlag.FindAllStringSubmatch(line, -1) {
			if !flagBelow(directory, own[1]) {
				problems = append(problems, "the test has no flag -"+own[1])
			}
		}
	}
	for _, match := range ownPath.FindAllStringSubmatch(line, -1) {
		if _, err := os.Stat(filepath.Join("..", match[1])); err != nil {
			problems = append(problems, err.Error())
		}
	}
	for program, directory := range programs {
		_, arguments, found := strings.Cut(line, program)
		for _, match := range longFlag.FindAllStringSubmatch(" "+arguments, -1) {
			if found && match[1] != "help" && !flagBelow(directory, match[1]) && !flagBelow(commandLine, match[1]) {
				problems = append(problems, program+"has no flag --"+match[1])
			}
		}
	}
	for _, match := range mrCommand.FindAllStringSubmatch(line, -1) {
		if !useBelow("../pkg/cli", match[1]) {
			problems = append(problems, "kubectl mr has no command "+match[1])
		}
	}
	return problems
}

func TestProblemsOf(t *testing.T) {
	const makefile, tests = "\ndemo: x\n", "\nTestLinks\n"
	for line, wanted := range map[string]int{
		"make demo": 0, "make nothing": 1, "go test ./docs -run TestLinks": 0, "go test ./docs -run 'TestNothing$'": 1, "go test ./nothing": 1,
		"go test ./test/cli -run TestLinks -large 5": 0, "go test ./docs -run TestLinks -large 5": 1,
		"kubectl apply -f examples/hello.yaml": 0, "kubectl apply -f examples/nothing.yaml": 1, "bin/bench --rest 5s --nothing": 1, "kubectl mr why -A": 0, "kubectl mr nothing": 1,
	} {
		if got := problemsOf(line, makefile, tests); len(got) != wanted {
			t.Errorf("%s: %q, want %d problems", line, got, wanted)
		}
	}
}

// flagBelow reports whether a package defines a flag.
func flagBelow(directory, name string) bool {
	return anyGoFile(directory, func(content string) bool { return strings.Contains(content, `"`+name+`", `) })
}

// useBelow reports whether a package below a directory defines a command.
func useBelow(directory, name string) bool {
	folders, err := filepath.Glob(filepath.Join(directory, "*"))
	use := regexp.MustCompile(`Use:\s*"` + name + `\b`)
	known := []string{"completion", "help", "version"}
	return err == nil && (slices.Contains(known, name) || slices.ContainsFunc(append(folders, directory), func(folder string) bool {
		return anyGoFile(folder, use.MatchString)
	}))
}

func anyGoFile(directory string, holds func(content string) bool) bool {
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	return err == nil && slices.ContainsFunc(files, func(file string) bool {
		content, err := os.ReadFile(file)
		return err == nil && holds(string(content))
	})
}
