package seed

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestRenderedDeletions checks that a Seed in a file, compared with a cluster, deletes the bundles that it no longer declares.
func TestRenderedDeletions(t *testing.T) {
	seed := known(t).Seed
	seed.Spec.Extensions, seed.Spec.Resources = nil, nil
	seed.Spec.Settings.VerticalPodAutoscaler = &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: false}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(seed)
	if err != nil {
		t.Fatal(err)
	}
	given := flow.RenderInputs{Declaration: &unstructured.Unstructured{Object: content}, Now: now}
	for name, test := range map[string]struct {
		emitted, want []string
	}{
		"without a cluster": {nil, nil},
		"all that it had": {
			[]string{bundleSystem, bundleAutoscaler, definitionsAutoscaling, prefixExtension + "networking-filter", "referenced-resources-" + seed.Name},
			[]string{"referenced-resources-" + seed.Name, prefixExtension + "networking-filter", bundleAutoscaler},
		},
	} {
		t.Run(name, func(t *testing.T) {
			given.Emitted = nil
			for _, each := range test.emitted {
				given.Emitted = append(given.Emitted, flow.Key{Namespace: "garden", Name: each})
			}
			_, plan, err := Renderer().Plan(given)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tombstone := range plan.Deletions() {
				got = append(got, tombstone.Name)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("the plan deletes %q, want %q", got, test.want)
			}
		})
	}
}
