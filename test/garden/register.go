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

// userName is the user as which the API server talks to kube-apiserver. Its rights are those that the chart gives.
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

// register makes kube-apiserver pass requests for the garden's API on to the API server, and gives that its rights, with what
// the chart has for the garden.
func (g *Garden) register(ctx context.Context, authority []byte) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	loaded, err := generate.LoadFrom(filepath.Join(root, "charts", "apiserver"))
	if err != nil {
		return err
	}
	files, err := generate.Render(loaded, "garden", map[string]any{
		"mode": "garden", "user": userName, "externalName": "localhost", "servicePort": g.port, "tls": map[string]any{"caBundle": string(authority)},
	})
	if err != nil {
		return fmt.Errorf("render the chart of the API server: %w", err)
	}
	c, err := client.New(g.Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the control plane: %w", err)
	}
	for document := range strings.SplitSeq(files["garden.yaml"], "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return fmt.Errorf("read the rendered chart: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// writeKubeconfig writes the kubeconfig of the API server, in which the administrator impersonates its user.
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
