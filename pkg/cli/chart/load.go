package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/trellis-k8s/trellis/pkg/helmchart"
)

// Is reports whether a path is a chart.
func Is(path string) bool {
	_, err := os.Stat(filepath.Join(path, chartutil.ChartfileName))
	return err == nil || strings.HasSuffix(path, ".tgz")
}

// load reads a chart and checks that it can be rendered. Helm's library limits its uncompressed size to 100 MiB.
func load(path string) (*v2.Chart, error) {
	loaded, err := loader.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: specify the folder or the archive (.tgz) of a chart; download charts from repositories with `helm pull`",
			err)
	case err != nil:
		return nil, fmt.Errorf("%s is not a valid chart: %w", path, err)
	}
	switch loaded.Metadata.Type {
	case "", "application":
	case "library":
		return nil, fmt.Errorf("the chart %s is a library chart, which cannot be rendered", path)
	default:
		return nil, fmt.Errorf("the chart %s has the unknown type %q", path, loaded.Metadata.Type)
	}
	if missing := helmchart.MissingDependencies(loaded); len(missing) > 0 {
		return nil, fmt.Errorf("dependencies of the chart %s are missing in its folder charts/: %s. "+
			"Download them with `helm dependency build %s`",
			path, strings.Join(missing, ", "), path)
	}
	return loaded, nil
}
