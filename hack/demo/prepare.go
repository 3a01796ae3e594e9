package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/examples"
	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/hack/demo/controlplanes"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

//go:embed objects
var objects embed.FS

// managerKubeconfig is the file with the kubeconfig of the Seed's resource-manager.
const managerKubeconfig = "seed-resource-manager.kubeconfig"

// prepare creates what the programs need in both clusters.
func (f *fleet) prepare(ctx context.Context) error {
	ofGarden, err := decode(objects.ReadFile("objects/garden.yaml"))
	if err != nil {
		return err
	}
	provider, err := f.registerProvider()
	if err != nil {
		return err
	}
	ofSeed, err := decode(objects.ReadFile("objects/seed.yaml"))
	if err != nil {
		return err
	}
	for _, cluster := range []struct {
		plane       *controlplane.ControlPlane
		definitions []string
		objects     []*unstructured.Unstructured
	}{
		{f.garden.ControlPlane, []string{"."}, append(ofGarden, provider...)},
		{f.seed, []string{".", "druid"}, ofSeed}, // controlplanes.Start watches Etcds
	} {
		for _, directory := range cluster.definitions {
			if err := installCRDs(ctx, cluster.plane.Config(), filepath.Join(f.root, "config", "crd", directory)); err != nil {
				return err
			}
		}
		c, err := client.New(cluster.plane.Config(), client.Options{})
		if err != nil {
			return fmt.Errorf("preparing the clusters: %w", err)
		}
		for _, object := range cluster.objects {
			if err := c.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// decode decodes the objects of a file that was read.
func decode(text []byte, err error) ([]*unstructured.Unstructured, error) {
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	var decoded []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("decoding objects: %w", err)
		}
		decoded = append(decoded, object)
	}
	return decoded, nil
}

// registerProvider returns the registration of the extension for the infrastructure, with its chart. Its Pod is simulated: Shoots without workers
// do not use it.
func (f *fleet) registerProvider() ([]*unstructured.Unstructured, error) {
	chart, err := generate.Packed(filepath.Join(f.root, "charts", "provider-local"))
	if err != nil {
		return nil, err
	}
	registration, err := decode(examples.Files.ReadFile("provider-local/registration.yaml"))
	for _, object := range registration {
		if object.GetKind() == "ControllerDeployment" {
			object.Object["helm"] = map[string]any{"rawChart": chart}
		}
	}
	return registration, err
}

// writeAccess writes the kubeconfig of the Seed's resource-manager. Policies of the Seed know it by its ServiceAccount.
func (f *fleet) writeAccess(ctx context.Context) error {
	c, err := client.New(f.seed.Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("making a kubeconfig: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: resourcemanager.Account}}
	kubeconfig, err := podprocess.KubeconfigOf(ctx, c, f.seed.Kubeconfig(), account, controlplanes.TokenValidity)
	if err != nil {
		return err
	}
	return os.WriteFile(f.path(managerKubeconfig), kubeconfig, 0o600)
}
