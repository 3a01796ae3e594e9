// Package embedded loads the charts that are part of the programs.
package embedded

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/trellis-k8s/trellis/charts"
)

// files returns the files of all charts, by the names of their directories. They never change.
var files = sync.OnceValues(func() (map[string][]*archive.BufferedFile, error) {
	all := map[string][]*archive.BufferedFile{}
	err := fs.WalkDir(charts.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(charts.Files, path)
		if err != nil {
			return err
		}
		name, file, _ := strings.Cut(path, "/")
		all[name] = append(all[name], &archive.BufferedFile{Name: file, Data: content})
		return nil
	})
	return all, err
})

// Load returns a copy of the chart with the name of its directory in charts, because rendering changes it.
func Load(name string) (*chartv2.Chart, error) {
	all, err := files()
	if err != nil {
		return nil, fmt.Errorf("read the charts: %w", err)
	}
	loaded, err := loader.LoadFiles(all[name])
	if err != nil {
		return nil, fmt.Errorf("read the chart of %s: %w", name, err)
	}
	return loaded, nil
}
