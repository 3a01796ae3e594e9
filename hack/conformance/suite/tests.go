package suite

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Test is a conformance test.
type Test struct {
	// Name is the full name, such as "[sig-apps] Daemon set should run and stop simple daemon [Conformance] [Serial]".
	Name string `json:"codename"`
	// File is the source file.
	File string `json:"file"`
}

// Serial reports whether the test must not run at the same time as others.
func (t Test) Serial() bool {
	return strings.Contains(t.Name, "[Serial]") || strings.Contains(t.Name, "[Disruptive]")
}

// Area returns the special interest group that owns the test, such as "apps".
func (t Test) Area() string { return areaOf(t.Name) }

func areaOf(name string) string {
	area, _, found := strings.Cut(strings.TrimPrefix(name, "[sig-"), "]")
	if !found || !strings.HasPrefix(name, "[sig-") {
		return "other"
	}
	return area
}

// Parse reads the output of `e2e.test --list-conformance-tests`. The tests are sorted by name.
func Parse(list []byte) ([]Test, error) {
	var tests []Test
	if err := yaml.Unmarshal(list, &tests); err != nil {
		return nil, fmt.Errorf("reading the list of conformance tests: %w", err)
	}
	if len(tests) == 0 {
		return nil, errors.New("the list of conformance tests is empty")
	}
	for i := range tests {
		tests[i].Name = normalize(tests[i].Name)
	}
	slices.SortFunc(tests, func(a, b Test) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(tests, func(a, b Test) bool { return a.Name == b.Name }), nil
}

// normalize replaces each sequence of white space by one space. Lists and reports wrap names differently.
func normalize(name string) string { return strings.Join(strings.Fields(name), " ") }

// Select returns the tests whose name matches the regular expression. The empty expression matches all. It is an error if none matches.
func Select(tests []Test, expression string) ([]Test, error) {
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("the selection %q is not a regular expression: %w", expression, err)
	}
	var selected []Test
	for _, t := range tests {
		if compiled.MatchString(t.Name) {
			selected = append(selected, t)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("none of the %d conformance tests matches %q", len(tests), expression)
	}
	return selected, nil
}

// Shard is a list of tests that one process runs one after the other.
type Shard []Test

// Focus returns the regular expression that matches exactly the tests of the shard.
func (s Shard) Focus() string {
	names := make([]string, len(s))
	for i, t := range s {
		names[i] = strings.ReplaceAll(regexp.QuoteMeta(t.Name), " ", `\s+`)
	}
	return "(" + strings.Join(names, "|") + ")$"
}

// Divide returns the shards of the tests that can run in parallel, and of those that cannot. A shard has at most size tests. Neighbours in
// the list of names, which are often equally slow, are in different shards.
func Divide(tests []Test, size int) (parallel, serial []Shard) {
	var independent, exclusive []Test
	for _, t := range tests {
		if t.Serial() {
			exclusive = append(exclusive, t)
		} else {
			independent = append(independent, t)
		}
	}
	return deal(independent, size), deal(exclusive, size)
}

// deal distributes tests like cards.
func deal(tests []Test, size int) []Shard {
	count := (len(tests) + size - 1) / size
	shards := make([]Shard, count)
	for i, t := range tests {
		shards[i%count] = append(shards[i%count], t)
	}
	return shards
}
