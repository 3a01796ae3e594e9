package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// rules is the content of rules.yaml.
type rules struct {
	Rules []*rule `json:"rules"`
}

// rule describes a phrase to avoid.
type rule struct {
	// Pattern is a case-insensitive regular expression. It matches whole words.
	Pattern string `json:"pattern"`
	// Allow lists patterns of correct phrases that begin where the match begins.
	Allow []string `json:"allow"`
	// In lists the kinds of text to which the rule applies. The default is all of them.
	In []kind `json:"in"`
	// Use is the replacement to suggest.
	Use string `json:"use"`

	phrase  *regexp.Regexp
	allowed []*regexp.Regexp
}

// finding is a phrase that a rule forbids.
type finding struct {
	rule  *rule
	line  int
	match string
}

func readRules(file string) (*rules, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	read := &rules{}
	if err := yaml.UnmarshalStrict(content, read); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, rule := range read.Rules {
		if err := rule.compile(); err != nil {
			return nil, fmt.Errorf("%s: pattern %q: %w", file, rule.Pattern, err)
		}
	}
	return read, nil
}

func (r *rule) compile() error {
	var err error
	if r.phrase, err = regexp.Compile(`(?i)\b(?:` + acrossLines(r.Pattern) + `)\b`); err != nil {
		return err
	}
	for _, pattern := range r.Allow {
		allowed, err := regexp.Compile(`(?i)^(?:` + acrossLines(pattern) + `)\b`)
		if err != nil {
			return err
		}
		r.allowed = append(r.allowed, allowed)
	}
	return nil
}

// acrossLines makes each space of a pattern also match a line break, but not an empty line.
func acrossLines(pattern string) string {
	return strings.ReplaceAll(pattern, " ", `(?: +| *\n *)`)
}

// check returns the findings in texts of one file, in the order of their lines.
func (r *rules) check(texts []text) []finding {
	var found []finding
	for _, text := range texts {
		for _, rule := range r.Rules {
			if len(rule.In) > 0 && !slices.Contains(rule.In, text.kind) {
				continue
			}
			for _, at := range rule.phrase.FindAllStringIndex(text.content, -1) {
				if rule.allows(text.content[at[0]:]) {
					continue
				}
				line := text.line + strings.Count(text.content[:at[0]], "\n")
				found = append(found, finding{rule: rule, line: line, match: text.content[at[0]:at[1]]})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found
}

func (r *rule) allows(rest string) bool {
	return slices.ContainsFunc(r.allowed, func(allowed *regexp.Regexp) bool { return allowed.MatchString(rest) })
}
