package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// provider is the name of the extension, of its chart, and of the directory of its examples.
const provider = "provider-local"

// MachineVersions are the versions of the machine image in the CloudProfile. Both use the machine image of the landscape.
var MachineVersions = []string{"1.0.0", "1.1.0"}

// registerProvider registers provider-local in the garden, with its chart in the ControllerDeployment. It is installed
// because the Seed needs it.
func (f *Fleet) registerProvider(ctx context.Context) error {
	chart, err := f.packedChart(provider)
	if err != nil {
		return err
	}
	values, err := f.providerValues()
	if err != nil {
		return err
	}
	objects, err := f.examples(provider + "/registration.yaml")
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "ControllerDeployment" {
			object.Object["helm"] = map[string]any{"rawChart": chart, "values": values}
		}
	}
	return applyObjects(ctx, f, objects)
}

// providerValues returns the values of the chart: images, the data that machines need to find theirs, and the node's
// directory with the buckets.
func (f *Fleet) providerValues() (map[string]any, error) {
	repository, tag, err := f.image(provider)
	if err != nil {
		return nil, err
	}
	environment := map[string]any{"REGISTRY": f.landscape.Registry()}
	for variable, name := range map[string]string{"PAUSE_IMAGE": "pause", "KUBELET_IMAGE": "kubelet"} {
		if environment[variable], err = f.landscape.Image(name); err != nil {
			return nil, err
		}
	}
	agentsRepository, agentsTag, err := f.image("node-agents")
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"image":    map[string]any{"repository": repository, "tag": tag},
		"machines": map[string]any{"environment": environment},
		"backup":   map[string]any{"hostPath": "/var/" + bucketsDirectory},
		// Bastions run the same image as the extension. Networks need the agents of nodes.
		"imageVectorOverwrite": fmt.Sprintf("images:\n- {name: %s, repository: %q, tag: %q}\n- {name: node-agents, repository: %q, tag: %q}\n",
			provider, repository, tag, agentsRepository, agentsTag),
	}, nil
}

// bucketsDirectory is the directory with the buckets for backups, below /var of the node.
const bucketsDirectory = "lib/landscape/buckets"

// Buckets returns the directory on this host with the buckets for backups.
func (f *Fleet) Buckets() string {
	return filepath.Join(f.landscape.Directory, "var", bucketsDirectory)
}

// packedChart returns the archive of a chart of the repository, encoded as in a ControllerDeployment.
func (f *Fleet) packedChart(name string) (string, error) {
	return generate.Packed(filepath.Join(f.landscape.Root, "charts", name))
}

// createCloudProfile creates the CloudProfile that Shoots refer to, with the machine image of the landscape.
func (f *Fleet) createCloudProfile(ctx context.Context) error {
	objects, err := f.examples(provider + "/cloudprofile.yaml")
	if err != nil {
		return err
	}
	versions := []any{map[string]any{"version": f.version}}
	if f.shootVersion != f.version {
		versions = append(versions, map[string]any{"version": f.shootVersion})
	}
	image, err := f.landscape.Image("machine")
	if err != nil {
		return err
	}
	var offered, images []any
	for _, version := range MachineVersions {
		offered = append(offered, map[string]any{
			"version": version, "cri": []any{map[string]any{"name": "containerd"}}, "inPlaceUpdates": map[string]any{"supported": true},
		})
		images = append(images, map[string]any{"version": version, "image": image})
	}
	for _, object := range objects {
		if err := errors.Join(
			unstructured.SetNestedSlice(object.Object, versions, "spec", "kubernetes", "versions"),
			unstructured.SetNestedSlice(object.Object, []any{map[string]any{"name": "local", "versions": offered}}, "spec", "machineImages"),
			unstructured.SetNestedSlice(object.Object, []any{map[string]any{"name": "local", "versions": images}},
				"spec", "providerConfig", "machineImages"),
		); err != nil {
			return fmt.Errorf("set the versions of the CloudProfile: %w", err)
		}
	}
	return applyObjects(ctx, f, objects)
}

// createCredentials creates the credentials that the Seed names for its DNS service. The Secret is empty because
// provider-local does not use it.
func (f *Fleet) createCredentials(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "dns"}}
	if err := client.IgnoreAlreadyExists(f.Create(ctx, secret)); err != nil {
		return fmt.Errorf("create the credentials of the DNS service: %w", err)
	}
	return nil
}

// examples returns the objects of a file in the directory examples of the repository.
func (f *Fleet) examples(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(filepath.Join(f.landscape.Root, "examples", path))
	if err != nil {
		return nil, fmt.Errorf("read an example: %w", err)
	}
	return parse(path, string(content))
}

// parse returns the objects of a YAML text. The name is used in errors.
func parse(name, text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func applyObjects(ctx context.Context, to client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := to.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
