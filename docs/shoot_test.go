package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// subtest matches the name of a test with one of its cases.
var subtest = regexp.MustCompile("`(Test[A-Z]\\w*)/([\\w-]+)`")

// TestFieldsOfShootsHaveTests checks that each row of "What a Shoot can declare" in shoot.md names existing tests
// and existing cases of tests.
func TestFieldsOfShootsHaveTests(t *testing.T) {
	_, section, _ := strings.Cut(pages(t)["shoot.md"], "\n## What a Shoot can declare\n")
	section, _, _ = strings.Cut(section, "\n## ")
	existing, rows := testsBelow(t, ".."), 0
	for line := range strings.SplitSeq(section, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, "| test |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		names := testName.FindAllString(cells[len(cells)-1], -1)
		if len(cells) != 3 || len(names) == 0 {
			t.Errorf("a row without a test: %s", line)
		}
		for _, name := range names {
			if !exists(name, existing) {
				t.Errorf("the test %s does not exist: %s", name, line)
			}
		}
		for _, named := range subtest.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			if !hasCase(t, named[1], named[2]) {
				t.Errorf("the test %s has no case %s: %s", named[1], named[2], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("found only %d rows", rows)
	}
}

// hasCase reports whether a file with the test also has the name of the case, in quotes.
func hasCase(t *testing.T, test, name string) bool {
	t.Helper()
	files, err := filepath.Glob("../pkg/shoot/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	components, err := filepath.Glob("../pkg/component/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, components...) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(content); strings.Contains(text, "\nfunc "+test+"(") && strings.Contains(text, `"`+name+`"`) {
			return true
		}
	}
	return false
}

// TestAllFieldsOfShootsAreListed checks that the section names each field of ShootSpec, or a field that contains
// it.
func TestAllFieldsOfShootsAreListed(t *testing.T) {
	_, section, _ := strings.Cut(pages(t)["shoot.md"], "\n## What a Shoot can declare\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	parent := ""
	for line := range strings.SplitSeq(section, "\n") {
		cell, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !isRow || !strings.HasPrefix(line, "|") {
			continue
		}
		for _, match := range code.FindAllStringSubmatch(cell, -1) {
			field := match[1]
			if rest, isShort := strings.CutPrefix(field, "…"); isShort {
				field = parent + rest
			} else if strings.HasPrefix(field, "spec.") {
				parent = field[:strings.LastIndex(field, ".")]
			}
			named = append(named, field)
		}
	}
	if missing := unnamed(reflect.TypeFor[corev1beta1.ShootSpec](), "spec", named); len(missing) > 0 {
		t.Errorf("the table of shoot.md lacks these fields: %s", strings.Join(missing, ", "))
	}
	if lacks := unnamed(reflect.TypeFor[corev1beta1.ShootSpec](), "spec", named[1:]); len(lacks) == 0 {
		t.Errorf("no field is reported as missing without %s", named[0])
	}
}

// code matches inline code.
var code = regexp.MustCompile("`([^`]+)`")

// unnamed returns the fields of a type that are not named, and that contain no named field.
func unnamed(of reflect.Type, path string, named []string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return []string{path}
	}
	var missing []string
	for i := range of.NumField() {
		name, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		at := path + "." + name
		switch {
		case options == "inline":
			missing = append(missing, unnamed(of.Field(i).Type, path, named)...)
		case slices.ContainsFunc(named, func(each string) bool { matches, err := filepath.Match(each, at); return err == nil && matches }):
		case slices.ContainsFunc(named, func(each string) bool { return strings.HasPrefix(each, at+".") }):
			missing = append(missing, unnamed(of.Field(i).Type, at, named)...)
		default:
			missing = append(missing, at)
		}
	}
	return missing
}
