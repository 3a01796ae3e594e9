package generate

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Load reads the chart of the resource-manager.
func Load(root string) (*chart.Chart, error) { return LoadFrom(filepath.Join(root, Chart)) }

// LoadFrom reads the chart in a directory.
func LoadFrom(directory string) (*chart.Chart, error) {
	loaded, err := loader.Load(directory)
	if err != nil {
		return nil, fmt.Errorf("read the chart %s: %w", directory, err)
	}
	return loaded, nil
}

// Render renders the chart's templates with Helm, and returns the results by file name without directory. Empty results
// are omitted. kinds are the kinds that the cluster has in addition to the usual ones. The values are validated against
// the schema.
func Render(loaded *chart.Chart, namespace string, values map[string]any, kinds ...string) (map[string]string, error) {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, kinds...)
	complete, err := util.ToRenderValues(loaded, values, common.ReleaseOptions{
		Name: "resource-manager", Namespace: namespace, Revision: 1, IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(loaded, complete)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range rendered {
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(path.Base(name), "_") {
			files[path.Base(name)] = text
		}
	}
	return files, nil
}

// plain is a directory below config/ and the inputs from which it is generated.
type plain struct {
	directory, values, mode, namespace string
}

func plainFiles(root string) (map[string][]byte, error) {
	loaded, err := Load(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, one := range []plain{
		{"config/seed", "seed.yaml", "seed", "garden"},
		{"config/shoot/source", "shoot.yaml", "shoot", "shoot--project--name"},
		{"config/shoot/target", "shoot.yaml", "shoot-target", "kube-system"},
	} {
		made, err := one.files(root, loaded)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.directory, err)
		}
		maps.Copy(files, made)
	}
	return files, nil
}

func (p plain) files(root string, loaded *chart.Chart) (map[string][]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, "hack", "chart", "values", p.values))
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", p.values, err)
	}
	values["mode"] = p.mode
	rendered, err := Render(loaded, p.namespace, values)
	if err != nil {
		return nil, err
	}
	delete(rendered, "NOTES.txt")
	files := map[string][]byte{}
	resources := slices.Sorted(maps.Keys(rendered))
	for _, name := range resources {
		files[p.directory+"/"+name] = []byte(header + tidy(rendered[name]))
	}
	kustomization, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources,
	})
	files[p.directory+"/kustomization.yaml"] = append([]byte(header), kustomization...)
	return files, err
}

// ofHelm matches lines of metadata about Helm or a release.
var ofHelm = regexp.MustCompile(`(?m)^ +(helm\.sh/\S+|app\.kubernetes\.io/(managed-by|instance)): .*\n`)

// tidy converts the output of a template to plain YAML.
func tidy(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "---\n")
	return ofHelm.ReplaceAllString(text+"\n", "")
}
