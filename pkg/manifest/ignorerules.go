package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// IgnoreRule selects fields of objects whose live values are not reverted.
type IgnoreRule struct {
	resourcesv1alpha1.IgnoreRule
	patterns []fieldowner.Pattern
}

// ParseIgnoreRules parses the rules of a ManagedResource about ignored fields.
func ParseIgnoreRules(detection *resourcesv1alpha1.DriftDetection) ([]IgnoreRule, error) {
	if detection == nil {
		return nil, nil
	}
	return parseRules("spec.driftDetection.ignore", detection.Ignore)
}

// ParseOnlyOnChangeRules parses the rules of a ManagedResource about fields that are only sent with a change.
func ParseOnlyOnChangeRules(detection *resourcesv1alpha1.DriftDetection) ([]IgnoreRule, error) {
	if detection == nil {
		return nil, nil
	}
	return parseRules("spec.driftDetection.onlyOnChange", detection.OnlyOnChange)
}

func parseRules(field string, specified []resourcesv1alpha1.IgnoreRule) ([]IgnoreRule, error) {
	var rules []IgnoreRule
	for i, rule := range specified {
		parsed := IgnoreRule{IgnoreRule: rule}
		for _, path := range rule.Paths {
			pattern, err := patternOf(path)
			if err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
			}
			parsed.patterns = append(parsed.patterns, pattern)
		}
		rules = append(rules, parsed)
	}
	return rules, nil
}

// patternOf parses a JSON pointer (RFC 6901) in which "*" matches every item of a list.
func patternOf(pointer string) (fieldowner.Pattern, error) {
	rest, found := strings.CutPrefix(pointer, "/")
	if !found || rest == "" {
		return nil, fmt.Errorf("the path %q is not a JSON pointer such as /spec/replicas", pointer)
	}
	var pattern fieldowner.Pattern
	for part := range strings.SplitSeq(rest, "/") {
		if _, err := strconv.Atoi(part); err == nil {
			return nil, fmt.Errorf("the path %q has an index; use * for all items of a list", pointer)
		}
		pattern = append(pattern, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	switch {
	case pattern[0] == "apiVersion", pattern[0] == "kind", pattern[0] == "*", pattern[0] == "metadata" && len(pattern) < 3:
		return nil, fmt.Errorf("the path %q cannot be ignored: it identifies the object", pointer)
	case pattern[0] == "metadata" && coversMark(pattern):
		return nil, fmt.Errorf("the path %q cannot be ignored: it covers a label or annotation that identifies the objects of the "+
			"resource-manager", pointer)
	}
	return pattern, nil
}

// coversMark reports whether a pattern that starts with metadata matches a label or annotation of the resource-manager.
func coversMark(pattern fieldowner.Pattern) bool {
	return slices.ContainsFunc([]fieldowner.Pattern{
		{"metadata", "labels", resourcesv1alpha1.LabelManagedBy},
		{"metadata", "annotations", resourcesv1alpha1.AnnotationOrigin},
		{"metadata", "annotations", resourcesv1alpha1.AnnotationDescription},
	}, func(mark fieldowner.Pattern) bool {
		for i, part := range pattern[:min(len(pattern), len(mark))] {
			if part != mark[i] && part != "*" {
				return false
			}
		}
		return true
	})
}

// ignoredFields returns the fields of an object that the rules select.
func ignoredFields(rules []IgnoreRule, ref object.Ref) []fieldowner.Pattern {
	var patterns []fieldowner.Pattern
	for _, rule := range rules {
		kindMatches := rule.Kind == "" || rule.Kind == ref.Kind && rule.Group == ref.Group
		if kindMatches && (rule.Name == "" || rule.Name == ref.Name) {
			patterns = append(patterns, rule.patterns...)
		}
	}
	return patterns
}
