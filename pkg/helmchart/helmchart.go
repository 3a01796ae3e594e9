// Package helmchart renders Helm charts with Helm's own library, as `helm template` does. It does not access a cluster
// and installs nothing.
package helmchart

import (
	"context"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// Release is the release that a chart is rendered for.
type Release struct{ Name, Namespace string }

// File is a text with manifests.
type File struct{ Name, Content string }

// Rendered is the output of a chart.
type Rendered struct {
	// Files are the CRDs in crds/, unchanged, and then the output of the templates, ordered by name.
	Files []File
	// LooksUp is set if a template called the function lookup, which always returned an empty result.
	LooksUp bool
}

// notes is the file with the notes that Helm prints.
const notes = "NOTES.txt"

// Render renders a chart. It modifies the chart: dependencies that the values disable are removed. Errors describe the
// problem of the chart or the values, with the file and line of a template. Values schemas may reference other schemas
// by URL, which are downloaded.
func Render(
	ctx context.Context, loaded *chartv2.Chart, release Release, values map[string]any, capabilities *common.Capabilities,
) (*Rendered, error) {
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, &DependencyError{err}
	}
	complete, err := util.ToRenderValues(loaded, values, common.ReleaseOptions{
		Name: release.Name, Namespace: release.Namespace, Revision: 1, IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, &ValuesError{err}
	}
	rendered := &Rendered{}
	renderer := engine.Engine{CustomTemplateFuncs: map[string]any{
		"lookup": func(_, _, _, _ string) (map[string]any, error) {
			rendered.LooksUp = true
			return map[string]any{}, nil
		},
	}}
	texts, err := renderer.RenderWithContext(ctx, loaded, complete)
	if err != nil {
		return nil, err
	}
	rendered.Files = filesOf(loaded, texts)
	return rendered, nil
}

// DependencyError reports that the dependencies of a chart cannot be processed.
type DependencyError struct{ error }

// Unwrap returns Helm's error.
func (e *DependencyError) Unwrap() error { return e.error }

// ValuesError reports that values do not fit a chart.
type ValuesError struct{ error }

// Unwrap returns Helm's error.
func (e *ValuesError) Unwrap() error { return e.error }

// filesOf returns the files with manifests.
func filesOf(loaded *chartv2.Chart, texts map[string]string) []File {
	var files []File
	for _, definition := range loaded.CRDObjects() {
		files = append(files, File{definition.Filename, string(definition.File.Data)})
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if content := documents(texts[name]); content != "" && !strings.HasSuffix(name, notes) {
			files = append(files, File{name, content})
		}
	}
	return files
}

// documents splits a text as Helm does, which accepts more document separators than YAML, such as "---apiVersion: v1".
func documents(text string) string {
	divided := releaseutil.SplitManifests(text)
	names := slices.Collect(maps.Keys(divided))
	slices.SortFunc(names, func(a, b string) int {
		if (releaseutil.BySplitManifestsOrder{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, divided[name])
	}
	return strings.Join(parts, "\n---\n")
}

// MissingDependencies returns the names of the dependencies that a chart declares but does not contain.
func MissingDependencies(loaded *chartv2.Chart) []string {
	var missing []string
	for _, dependency := range loaded.Metadata.Dependencies {
		there := slices.ContainsFunc(loaded.Dependencies(), func(chart *chartv2.Chart) bool { return chart.Name() == dependency.Name })
		if !there {
			missing = append(missing, dependency.Name)
		}
	}
	return missing
}
