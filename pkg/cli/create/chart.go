package create

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/trellis-k8s/trellis/pkg/cli/chart"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/manifest"
)

// hookAnnotation specifies when Helm runs an object as a hook, instead of installing it.
const hookAnnotation = "helm.sh/hook"

// maxValuesBytes is the maximum size of a file with values, in bytes.
const maxValuesBytes = 8 << 20

// chartFlags specify a chart and how to render it.
type chartFlags struct {
	path               string
	valueFiles         []string
	assigned, textual  []string
	release, namespace string
	kubeVersion        string
	apiVersions        []string
}

func (f *chartFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "chart", "", "Folder or archive (.tgz) of a Helm chart")
	flags.StringArrayVar(&f.valueFiles, "values", nil, "File with values for the chart; - for standard input. May be repeated")
	flags.StringArrayVar(&f.assigned, "set-value", nil, "Values for the chart as PATH=VALUE, such as image.tag=v2. May be repeated")
	flags.StringArrayVar(&f.textual, "set-string-value", nil, "Like --set-value, for strings that look like numbers or booleans")
	flags.StringVar(&f.release, "release-name", "", "Release name for the chart (default: the name of the ManagedResource)")
	flags.StringVar(&f.namespace, "release-namespace", "",
		"Release namespace for the chart, and for its objects without a namespace (default: the namespace of the ManagedResource)")
	flags.StringVar(&f.kubeVersion, "kube-version", "", "Kubernetes version for the chart, such as 1.37 (default: that of Helm's library)")
	flags.StringSliceVar(&f.apiVersions, "api-versions", nil,
		"API versions for the chart in addition to Kubernetes' own, such as monitoring.coreos.com/v1")
}

// check returns an error if a flag for charts is set without a chart.
func (f *chartFlags) check() error {
	if f.path != "" {
		return nil
	}
	for flag, given := range map[string]bool{
		"values": len(f.valueFiles) > 0, "set-value": len(f.assigned) > 0, "set-string-value": len(f.textual) > 0,
		"release-name": f.release != "", "release-namespace": f.namespace != "", "kube-version": f.kubeVersion != "",
		"api-versions": len(f.apiVersions) > 0,
	} {
		if given {
			return fmt.Errorf("--%s requires --chart", flag)
		}
	}
	return nil
}

// read returns the objects of the chart for the named ManagedResource. It warns on standard error about omitted
// hooks.
func (f *chartFlags) read(ctx context.Context, c *console.Console, name types.NamespacedName) ([]manifest.Document, error) {
	settings := chart.Settings{Release: f.release, Namespace: f.namespace, KubeVersion: f.kubeVersion, APIVersions: f.apiVersions}
	if settings.Release == "" {
		settings.Release = name.Name
	}
	if settings.Namespace == "" {
		settings.Namespace = name.Namespace
	}
	var err error
	if settings.Values, err = f.values(c); err != nil {
		return nil, err
	}
	rendered, err := chart.Render(ctx, f.path, settings)
	if err != nil {
		return nil, err
	}
	if rendered.Deprecated {
		c.Warn("The chart %s is deprecated.", f.path)
	}
	if rendered.LooksUp {
		c.Warn("The chart %s uses the function lookup, which finds nothing, because charts are rendered without a cluster.", f.path)
	}
	var documents []manifest.Document
	var errs []error
	for _, file := range rendered.Files {
		read, err := pack.Parse(file.Name, []byte(file.Content))
		documents, errs = append(documents, read...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("the chart %s renders invalid manifests:\n%w", f.path, err)
	}
	documents, hooks := withoutHooks(documents)
	if len(hooks) > 0 {
		c.Warn("Omitted, because chart hooks are not run: %s.", strings.Join(hooks, ", "))
	}
	setNamespaces(documents, settings.Namespace)
	return documents, nil
}

func (f *chartFlags) values(c *console.Console) (chart.Values, error) {
	values := chart.Values{}
	for _, path := range f.valueFiles {
		content, err := pack.ReadFile(c.In, path, maxValuesBytes)
		if err != nil {
			return nil, err
		}
		if err := values.AddFile(chart.File{Name: path, Content: string(content)}); err != nil {
			return nil, err
		}
	}
	for _, assignment := range f.assigned {
		if err := values.Assign(assignment); err != nil {
			return nil, err
		}
	}
	for _, assignment := range f.textual {
		if err := values.AssignText(assignment); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// withoutHooks returns the objects that Helm installs, and the names of the hooks. Tests are omitted silently.
func withoutHooks(documents []manifest.Document) (installed []manifest.Document, hooks []string) {
	for _, document := range documents {
		object := unstructured.Unstructured{Object: document.Object}
		events, isHook := object.GetAnnotations()[hookAnnotation]
		switch {
		case !isHook:
			installed = append(installed, document)
		case !isTest(events):
			hooks = append(hooks, fmt.Sprintf("%s %s (%s)", object.GetKind(), object.GetName(), events))
		}
	}
	return installed, hooks
}

// isTest reports whether only `helm test` runs a hook.
func isTest(events string) bool {
	tests := []string{"test", "test-success", "test-failure"}
	for event := range strings.SplitSeq(strings.ToLower(events), ",") {
		if !slices.Contains(tests, strings.TrimSpace(event)) {
			return false
		}
	}
	return true
}

// setNamespaces sets the release namespace on objects without a namespace, as Helm does. It knows the scope of the kinds of
// Kubernetes
// and of those that the chart defines. For other kinds, the resource-manager discovers the scope, and ignores the
// namespace of
// cluster-scoped objects.
func setNamespaces(documents []manifest.Document, namespace string) {
	clusterScoped := map[schema.GroupKind]bool{}
	for _, document := range documents {
		object := unstructured.Unstructured{Object: document.Object}
		scope, _, _ := unstructured.NestedString(document.Object, "spec", "scope")
		if object.GetKind() == "CustomResourceDefinition" && scope == "Cluster" {
			group, _, _ := unstructured.NestedString(document.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(document.Object, "spec", "names", "kind")
			clusterScoped[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	for _, document := range documents {
		object := unstructured.Unstructured{Object: document.Object}
		isKnown := openapi.IsCertainlyClusterScoped(yaml.TypeMeta{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()})
		if object.GetNamespace() == "" && !isKnown && !clusterScoped[object.GroupVersionKind().GroupKind()] {
			object.SetNamespace(namespace)
		}
	}
}
