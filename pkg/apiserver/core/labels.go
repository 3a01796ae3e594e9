package core

import (
	"maps"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// withSeedNames returns labels with exactly one label for each Seed of an object, so that a gardenlet can select its
// objects.
func withSeedNames(labels map[string]string, seeds ...*string) map[string]string {
	wanted := map[string]bool{}
	for _, seed := range seeds {
		if seed != nil && *seed != "" {
			wanted[constants.LabelPrefixSeedName+*seed] = true
		}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return strings.HasPrefix(key, constants.LabelPrefixSeedName) && !wanted[key]
	})
	for key := range wanted {
		labels = withLabel(labels, key, "true")
	}
	return labels
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}
