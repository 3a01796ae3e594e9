// Command prose checks the English of documentation, of Go comments and of texts in Go strings against
// hack/prose/rules.yaml. Strings of tests are not checked.
//
// \tprose [-count] PATH...
//
// It prints each finding as file:line and exits with status 1 if there are any. With -count, it prints the number of
// findings for each rule instead.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const rulesFile = "hack/prose/rules.yaml"

func main() {
	count := flag.Bool("count", false, "print the number of findings for each rule")
	flag.Parse()
	found, err := run(flag.Args(), *count, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if found > 0 && !*count {
		fmt.Fprintf(os.Stderr, "%d findings: rewrite the sentence, or correct the rule in %s\n", found, rulesFile)
		os.Exit(1)
	}
}

// run checks all files below the paths and returns the number of findings.
func run(paths []string, count bool, out io.Writer) (int, error) {
	rules, err := readRules(rulesFile)
	if err != nil {
		return 0, err
	}
	total, byRule := 0, map[string]int{}
	err = walk(paths, func(file string) error {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts, err := textsOf(file, content)
		if err != nil {
			return err
		}
		for _, finding := range rules.check(texts) {
			total++
			byRule[finding.rule.Pattern]++
			if !count {
				fmt.Fprintf(out, "%s:%d: %q: use %s\n", file, finding.line, finding.match, finding.rule.Use)
			}
		}
		return nil
	})
	if count {
		for _, rule := range rules.Rules {
			fmt.Fprintf(out, "%6d  %s\n", byRule[rule.Pattern], rule.Pattern)
		}
	}
	return total, err
}

// walk calls check with each Markdown and Go file at or below the paths, except generated files and test data.
func walk(paths []string, check func(file string) error) error {
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir() || strings.HasPrefix(entry.Name(), "zz_generated"):
				return nil
			case filepath.Ext(path) == ".md" || filepath.Ext(path) == ".go":
				return check(path)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
