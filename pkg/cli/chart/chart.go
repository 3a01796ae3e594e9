// Package chart renders Helm charts by Helm's own code. No cluster is asked, nothing is downloaded, and nothing is installed.
package chart

import (
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"
)

// Load returns the chart in a folder or an archive (.tgz).
func Load(path string) (*v2.Chart, error) {
	loaded, err := loader.Load(path)
	if err != nil {
		return nil, fmt.Errorf("load the chart %s: %w", path, err)
	}
	return loaded, nil
}

// Render returns the files that the templates of a chart make, by their names.
func Render(ctx context.Context, loaded *v2.Chart, release, namespace string, assignments []string) (map[string]string, error) {
	values := map[string]any{}
	for _, assignment := range assignments {
		if err := strvals.ParseInto(assignment, values); err != nil {
			return nil, fmt.Errorf("set the value %q: %w", assignment, err)
		}
	}
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, fmt.Errorf("process the dependencies of the chart %s: %w", loaded.Name(), err)
	}
	complete, err := util.ToRenderValues(loaded, values,
		common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("make the values of the chart %s: %w", loaded.Name(), err)
	}
	files, err := engine.Engine{}.RenderWithContext(ctx, loaded, complete)
	if err != nil {
		return nil, fmt.Errorf("render the chart %s: %w", loaded.Name(), err)
	}
	for name, content := range files {
		if len(releaseutil.SplitManifests(content)) == 0 {
			delete(files, name)
		}
	}
	return files, nil
}
