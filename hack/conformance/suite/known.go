package suite

import (
	_ "embed" // known.yaml
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

//go:embed known.yaml
var knownFailures []byte

// Known explains why a test fails on some clusters.
type Known struct {
	// Test is the full name of the test.
	Test string `json:"test"`
	// Clusters are the names of the clusters on which the test fails; empty for all.
	Clusters []string `json:"clusters,omitempty"`
	// Reason explains the failure.
	Reason string `json:"reason"`
}

// KnownFailures returns the known failures of the repository.
func KnownFailures() ([]Known, error) { return ParseKnown(knownFailures) }

// ParseKnown reads a list of known failures. Each needs the name of a test and a reason.
func ParseKnown(content []byte) ([]Known, error) {
	var known []Known
	if err := yaml.UnmarshalStrict(content, &known); err != nil {
		return nil, fmt.Errorf("reading the known failures: %w", err)
	}
	var errs []error
	for i, k := range known {
		if k.Test == "" || k.Reason == "" {
			errs = append(errs, fmt.Errorf("the known failure %d needs a test and a reason", i+1))
		}
		if k.Test != normalize(k.Test) {
			errs = append(errs, fmt.Errorf("the name %q has superfluous white space", k.Test))
		}
	}
	return known, errors.Join(errs...)
}

// Explain returns why a test fails on a cluster. It is empty if that is not known.
func Explain(known []Known, cluster, test string) string {
	for _, k := range known {
		if k.Test == test && (len(k.Clusters) == 0 || slices.Contains(k.Clusters, cluster)) {
			return k.Reason
		}
	}
	return ""
}

// Unknown returns the names of known failures that no test has.
func Unknown(known []Known, tests []Test) []string {
	var names []string
	for _, k := range known {
		if !slices.ContainsFunc(tests, func(t Test) bool { return t.Name == k.Test }) {
			names = append(names, k.Test)
		}
	}
	return names
}
