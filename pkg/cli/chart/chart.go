// Package chart renders Helm charts with Helm's own library, as `helm template` does. It does not access a cluster, installs nothing,
// and downloads only what a chart's values schema references by URL.
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

// Settings specify how a chart is rendered.
type Settings struct {
	// Release and Namespace are the name and the namespace of the release that the chart sees.
	Release, Namespace string
	// Values are put over those of the chart.
	Values map[string]any
	// KubeVersion is the version of the cluster that the chart sees, such as 1.37; that of Helm's library by default.
	KubeVersion string
	// APIVersions are the API versions that the chart sees in addition to Kubernetes' own, such as monitoring.coreos.com/v1.
	APIVersions []string
}

// File is a text with objects.
type File struct{ Name, Content string }

// Rendered is the output of a chart.
type Rendered struct {
	// Files are the CRDs in crds/, unchanged, and then the output of the templates, ordered by name.
	Files []File
	// LooksUp is set if a template called the function lookup, which found nothing.
	LooksUp bool
	// Deprecated is set if the chart is marked as deprecated.
	Deprecated bool
}

// notes is the file with the notes that Helm prints.
const notes = "NOTES.txt"

// Render renders the chart in a folder or an archive (.tgz). Errors describe what is wrong with the chart or the values, and name
// the file and the line of a template.
func Render(ctx context.Context, path string, settings Settings) (*Rendered, error) {
	loaded, err := load(path)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ValidateReleaseName(settings.Release); err != nil {
		return nil, fmt.Errorf("invalid release name %q, use --release-name to set another one: %w", settings.Release, err)
	}
	capabilities, err := settings.capabilities(loaded.Metadata)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(loaded, settings.Values); err != nil {
		return nil, fmt.Errorf("process the dependencies of the chart %s: %w", path, err)
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

// capabilities returns the cluster capabilities that the chart sees. It fails if the chart does not support the Kubernetes version.
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
		return nil, fmt.Errorf("the chart %s requires Kubernetes %s, not %s: set the version of the cluster with --kube-version",
			metadata.Name, wanted, version)
	}
	return capabilities, nil
}

// filesOf returns the files that contain objects.
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
