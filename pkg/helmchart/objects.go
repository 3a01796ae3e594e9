package helmchart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	// MaxArchiveBytes limits the size of a chart's archive. Helm's library limits its contents.
	MaxArchiveBytes = 16 << 20
	// renderTimeout limits the rendering of a chart.
	renderTimeout = 30 * time.Second
)

// Objects renders the chart in an archive and returns the objects, for a version of Kubernetes; empty for any. Errors name the chart's file and the line.
func Objects(
	ctx context.Context, archive []byte, of Release, values map[string]any, kubeVersion string,
) ([]*unstructured.Unstructured, error) {
	if len(archive) > MaxArchiveBytes {
		return nil, fmt.Errorf("the archive has %d bytes, more than the %d allowed", len(archive), MaxArchiveBytes)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("the archive is not a chart: %w", err)
	}
	return ObjectsOf(ctx, loaded, of, values, kubeVersion)
}

// ObjectsOf is [Objects] for a loaded chart, which it changes: see [Render].
func ObjectsOf(
	ctx context.Context, loaded *chartv2.Chart, of Release, values map[string]any, kubeVersion string,
) ([]*unstructured.Unstructured, error) {
	capabilities, err := checkChart(loaded, kubeVersion)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	rendered, err := Render(ctx, loaded, of, values, capabilities)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range rendered.Files {
		found, err := objectsIn(file)
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			if hook := object.GetAnnotations()[release.HookAnnotation]; hook != "" {
				return nil, fmt.Errorf("%s: %s %s has the annotation %s: %s. "+
					"Hooks are not run: deploy the object without the annotation, or do its work in the extension",
					at(loaded, file.Name, release.HookAnnotation), object.GetKind(), object.GetName(), release.HookAnnotation, hook)
			}
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// checkChart returns the capabilities of the cluster for a chart, or an error if the chart cannot be rendered.
func checkChart(loaded *chartv2.Chart, kubeVersion string) (*common.Capabilities, error) {
	if loaded.Metadata.Type == "library" {
		return nil, fmt.Errorf("the chart %s is a library chart, which has nothing to install", loaded.Name())
	}
	if missing := MissingDependencies(loaded); len(missing) > 0 {
		return nil, fmt.Errorf("dependencies of the chart %s are missing in the archive: %s", loaded.Name(), strings.Join(missing, ", "))
	}
	capabilities := common.DefaultCapabilities.Copy()
	if kubeVersion != "" {
		version, err := common.ParseKubeVersion(kubeVersion)
		if err != nil {
			return nil, fmt.Errorf("the version of the cluster: %w", err)
		}
		capabilities.KubeVersion = *version
	}
	version := capabilities.KubeVersion.String()
	if wanted := loaded.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, version) {
		return nil, fmt.Errorf("the chart %s requires Kubernetes %s, and the cluster has %s", loaded.Name(), wanted, version)
	}
	return capabilities, nil
}

// objectsIn returns the objects in a rendered file.
func objectsIn(file File) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(file.Content, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("the output of %s is not YAML: %w", file.Name, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return nil, fmt.Errorf("the output of %s has a document without kind or apiVersion", file.Name)
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		err := object.EachListItem(func(item runtime.Object) error {
			one, ok := item.(*unstructured.Unstructured)
			if !ok {
				return errors.New("an item is not an object")
			}
			objects = append(objects, one)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("the output of %s has a list that cannot be read: %w", file.Name, err)
		}
	}
	return objects, nil
}

// at returns the name of a file of a chart with the line of the first occurrence of a text.
func at(loaded *chartv2.Chart, name, text string) string {
	for _, template := range loaded.Templates {
		if !strings.HasSuffix(name, "/"+template.Name) {
			continue
		}
		if before, _, found := strings.Cut(string(template.Data), text); found {
			return fmt.Sprintf("%s:%d", name, strings.Count(before, "\n")+1)
		}
	}
	return name
}
