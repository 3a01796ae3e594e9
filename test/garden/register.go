package garden

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
)

// userName is the user that the API server authenticates as at kube-apiserver. It has the permissions of the chart.
const userName = "gardener-apiserver"

// versions are the groups and versions that the API server serves.
func versions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, resource := range served.Resources() {
		if version := resource.GroupVersion(); !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return versions
}

// fieldOwner owns the fields of the garden's objects in its control plane.
const fieldOwner = "test-garden"

// isAPIService reports whether the object makes kube-apiserver forward requests to the API server.
func isAPIService(object *unstructured.Unstructured) bool { return object.GetKind() == "APIService" }

// isRight reports whether the object is needed before the API server starts.
func isRight(object *unstructured.Unstructured) bool { return !isAPIService(object) }

// applyChart applies the selected objects of the chart for the garden's side.
func (g *Garden) applyChart(ctx context.Context, selected func(*unstructured.Unstructured) bool) error {
	objects, err := g.renderChart()
	if err != nil {
		return err
	}
	c, err := client.New(g.Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the control plane: %w", err)
	}
	for _, object := range objects {
		if !selected(object) {
			continue
		}
		configuration := client.ApplyConfigurationFromUnstructured(object)
		if err := c.Apply(ctx, configuration, client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// renderChart renders the chart of the API server for the garden's side, with the current port of the API server.
func (g *Garden) renderChart() ([]*unstructured.Unstructured, error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	loaded, err := generate.LoadFrom(filepath.Join(root, "charts", "apiserver"))
	if err != nil {
		return nil, err
	}
	files, err := generate.Render(loaded, "garden", map[string]any{
		"mode": "garden", "user": userName, "externalName": "localhost", "servicePort": g.port,
		"tls": map[string]any{"caBundle": string(g.authority)},
	})
	if err != nil {
		return nil, fmt.Errorf("render the chart of the API server: %w", err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(files["garden.yaml"]+"\n---\n"+files["users.yaml"], "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("read the rendered chart: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// writeKubeconfig writes the kubeconfig of the API server. It impersonates the API server's user as administrator.
func (g *Garden) writeKubeconfig() (string, error) {
	config, err := clientcmd.Load(g.Kubeconfig())
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig of the control plane: %w", err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = userName
	}
	path := filepath.Join(g.dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
