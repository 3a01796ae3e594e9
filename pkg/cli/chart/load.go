package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Is tells whether a path is that of a chart.
func Is(path string) bool {
	_, err := os.Stat(filepath.Join(path, chartutil.ChartfileName))
	return err == nil || strings.HasSuffix(path, ".tgz")
}

// load returns a chart that can be rendered. Helm's library bounds how large a chart may be (100 MiB without compression).
func load(path string) (*v2.Chart, error) {
	loaded, err := loader.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: name the folder or the archive (.tgz) of a chart; one of a repository is fetched by `helm pull`", err)
	case err != nil:
		return nil, fmt.Errorf("%s is no chart that can be read: %w", path, err)
	}
	switch loaded.Metadata.Type {
	case "", "application":
	case "library":
		return nil, fmt.Errorf("the chart %s is a library for other charts, and makes no objects", path)
	default:
		return nil, fmt.Errorf("the chart %s is of the type %q, which is not known", path, loaded.Metadata.Type)
	}
	if missing := missingDependencies(loaded); len(missing) > 0 {
		return nil, fmt.Errorf("the chart %s needs others that are not in its folder charts/: %s. Fetch them with `helm dependency build %s`",
			path, strings.Join(missing, ", "), path)
	}
	return loaded, nil
}

// missingDependencies names the charts that a chart needs and does not have.
func missingDependencies(loaded *v2.Chart) []string {
	var missing []string
	for _, dependency := range loaded.Metadata.Dependencies {
		there := slices.ContainsFunc(loaded.Dependencies(), func(chart *v2.Chart) bool { return chart.Name() == dependency.Name })
		if !there {
			missing = append(missing, dependency.Name)
		}
	}
	return missing
}
