// Package chart renders Helm charts by Helm's own code, as `helm template` does. No cluster is asked, nothing is installed, and
// nothing is downloaded but what a chart's schema of values refers to by its URL.
package chart

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// Settings say how a chart is rendered.
type Settings struct {
	// Release and Namespace are what the chart is told of its release.
	Release, Namespace string
	// Values are put over those of the chart.
	Values map[string]any
	// KubeVersion is what the chart is told of the cluster's version, such as 1.37; that of Helm's library by default.
	KubeVersion string
	// APIVersions are what the chart is told of the cluster beside Kubernetes' own APIs, such as monitoring.coreos.com/v1.
	APIVersions []string
}

// File is a text with objects.
type File struct{ Name, Content string }

// Rendered is what a chart makes.
type Rendered struct {
	// Files are the definitions in crds/, as they are, and then what the templates make, in the order of their names.
	Files []File
	// LooksUp says that a template asked for objects of a cluster, and was told that there are none.
	LooksUp bool
	// Deprecated says that the chart calls itself so.
	Deprecated bool
}

// notes is the file that a chart shows to people.
const notes = "NOTES.txt"

// Render returns what the chart in a folder or an archive (.tgz) makes. The error says what is wrong with the chart or the values;
// of a template it names the file and the line.
func Render(ctx context.Context, path string, settings Settings) (*Rendered, error) {
	loaded, err := load(path)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ValidateReleaseName(settings.Release); err != nil {
		return nil, fmt.Errorf("a release cannot be called %q, choose another name with --release-name: %w", settings.Release, err)
	}
	capabilities, err := settings.capabilities(loaded.Metadata)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(loaded, settings.Values); err != nil {
		return nil, fmt.Errorf("choose the dependencies of the chart %s: %w", path, err)
	}
	values, err := util.ToRenderValues(loaded, settings.Values, common.ReleaseOptions{
		Name: settings.Release, Namespace: settings.Namespace, Revision: 1, IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, fmt.Errorf("the values for the chart %s: %w", path, err)
	}
	rendered := &Rendered{Deprecated: loaded.Metadata.Deprecated}
	renderer := engine.Engine{CustomTemplateFuncs: map[string]any{
		"lookup": func(_, _, _, _ string) (map[string]any, error) {
			rendered.LooksUp = true
			return map[string]any{}, nil
		},
	}}
	texts, err := renderer.RenderWithContext(ctx, loaded, values)
	if err != nil {
		return nil, fmt.Errorf("render the chart %s: %w", path, err)
	}
	rendered.Files = filesOf(loaded, texts)
	return rendered, nil
}

// capabilities returns what the chart is told of the cluster. The error says that it is for other versions.
func (s *Settings) capabilities(metadata *v2.Metadata) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	if s.KubeVersion != "" {
		version, err := common.ParseKubeVersion(s.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("--kube-version: %w", err)
		}
		capabilities.KubeVersion = *version
	}
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, s.APIVersions)
	version := capabilities.KubeVersion.String()
	if wanted := metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, version) {
		return nil, fmt.Errorf("the chart %s is for Kubernetes %s, and not for %s: say with --kube-version which version the cluster has",
			metadata.Name, wanted, version)
	}
	return capabilities, nil
}

// filesOf returns the texts with objects.
func filesOf(loaded *v2.Chart, texts map[string]string) []File {
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

// documents divides a text as Helm does, which takes more for the beginning of a document than YAML, such as "---apiVersion: v1".
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
