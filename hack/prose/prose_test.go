package main

import (
	"slices"
	"strconv"
	"testing"
)

func TestCheck(t *testing.T) {
	rules, err := readRules("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, file, content string
		want                []string
	}{
		{"comments", "a.go", "package a\n\n// A tells whether it is\n// no map. It is none.\nconst A = 1\n", []string{"3 tells", "3 is\n no", "4 is none"}},
		{"blocks of comments", "a.go", "package a\n\n/* Nobody\nknows. */\n", []string{"3 Nobody"}},
		{"strings", "a.go", "package a\n\nvar a = []string{\"told\", \"was told\", `one\ntold you`}\n", []string{"3 told", "4 told"}},
		{"strings of tests", "a_test.go", "package a\n\n// Nobody\nvar a = \"was told\"\n", []string{"3 Nobody"}},
		{"code in comments", "a.go", "package a\n\n// Use `tell()`, not tellAll.\n", nil},
		{"identifiers", "a.go", "package a\n\nvar told int\n", nil},
		{"Markdown", "a.md", "# Told\n\nIt is created anew.\n", []string{"1 Told", "3 anew"}},
		{"code in Markdown", "a.md", "`told` [link](docs/told.md)\n```sh\ntold\n```\nDone.\n", nil},
		{"allowed", "a.md", "There is no map. There are none. It is no longer a map, one of which is red, and is no more than two.\n", nil},
		{"across a paragraph", "a.md", "of\n\nwhich\n", nil},
		{"only in strings", "a.go", "package a\n\n// It is put back.\nvar a = \"was put back\"\n", []string{"4 put back"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			texts, err := textsOf(test.file, []byte(test.content))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, finding := range rules.check(texts) {
				got = append(got, strconv.Itoa(finding.line)+" "+finding.match)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
