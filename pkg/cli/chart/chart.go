// Package chart renders Helm charts in folders and archives for kubectl mr. It downloads only the URLs that a chart's
// values
// schema references.
package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/trellis-k8s/trellis/pkg/helmchart"
)

// Settings specify how a chart is rendered.
type Settings struct {
	// Release and Namespace are the name and the namespace of the release that the chart sees.
	Release, Namespace string
	// Values override the values of the chart.
	Values map[string]any
	// KubeVersion is the Kubernetes version that the chart sees, such as 1.37. The default is the version of Helm's
	// library.
	KubeVersion string
	// APIVersions are additional API versions that the chart sees, such as monitoring.coreos.com/v1. It always sees
	// those of
	// Kubernetes.
	APIVersions []string
}

// File is a named YAML file.
type File struct{ Name, Content string }

// Rendered is the output of a chart.
type Rendered struct {
	// Files are the CRDs in crds/, unchanged, and then the output of the templates, ordered by name.
	Files []File
	// LooksUp is set if a template called the function lookup, which always returns an empty result.
	LooksUp bool
	// Deprecated is set if the chart is marked as deprecated.
	Deprecated bool
}

// Render renders the chart in a folder or an archive (.tgz). Errors describe what is wrong with the chart or the
// values, and
// name the file and line of a template.
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
	release := helmchart.Release{Name: settings.Release, Namespace: settings.Namespace}
	rendered, err := helmchart.Render(ctx, loaded, release, settings.Values, capabilities)
	var dependencies *helmchart.DependencyError
	var values *helmchart.ValuesError
	switch {
	case errors.As(err, &dependencies):
		return nil, fmt.Errorf("process the dependencies of the chart %s: %w", path, err)
	case errors.As(err, &values):
		return nil, fmt.Errorf("invalid values for the chart %s: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("render the chart %s: %w", path, err)
	}
	all := &Rendered{LooksUp: rendered.LooksUp, Deprecated: loaded.Metadata.Deprecated}
	for _, file := range rendered.Files {
		all.Files = append(all.Files, File(file))
	}
	return all, nil
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
