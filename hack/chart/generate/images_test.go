package generate

import (
	"maps"
	"path/filepath"
	"regexp"
	"testing"
)

// checksum is the annotation of a Pod with the sum of its lists of images.
var checksum = regexp.MustCompile(`(?m)^        checksum/images: "?([0-9a-f]{64})"?$`)

// TestImagesRestartPods checks that a changed list of images starts programs again, which read it only once.
func TestImagesRestartPods(t *testing.T) {
	lists := []map[string]any{{"imageVectorOverwrite": "images: []"}, {"imageVectorOverwrite": "images: [{}]"}, {"componentImageVectorOverwrites": "components: []"}}
	for chart, values := range map[string]map[string]any{"gardenlet": gardenletValues(t), "operator": {}} {
		loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", chart))
		if err != nil {
			t.Fatal(err)
		}
		sums := map[string]bool{}
		for _, list := range lists {
			all := maps.Clone(values)
			maps.Copy(all, list)
			files, err := Render(loaded, "garden", all)
			if err != nil {
				t.Fatal(err)
			}
			found := checksum.FindStringSubmatch(files["deployment.yaml"])
			if found == nil {
				t.Fatalf("%s with %v: Pods have no annotation checksum/images:\n%s", chart, list, files["deployment.yaml"])
			}
			sums[found[1]] = true
		}
		if len(sums) != len(lists) {
			t.Errorf("%s: %d lists of images have %d sums", chart, len(lists), len(sums))
		}
	}
}
