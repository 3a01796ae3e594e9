package fleet

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
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

// registerProvider registers provider-local in the garden, with its chart in the ControllerDeployment. The Seed needs it, so that it is installed.
func (f *Fleet) registerProvider(ctx context.Context) error {
	chart, err := f.packedChart(provider)
	if err != nil {
		return err
	}
	repository, tag, err := f.image(provider)
	if err != nil {
		return err
	}
	objects, err := f.examples(provider + "/registration.yaml")
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "ControllerDeployment" {
			object.Object["helm"] = map[string]any{
				"rawChart": chart, "values": map[string]any{"image": map[string]any{"repository": repository, "tag": tag}},
			}
		}
	}
	return f.applyObjects(ctx, objects)
}

// packedChart returns the archive of a chart of the repository, encoded as in a ControllerDeployment.
func (f *Fleet) packedChart(name string) (string, error) {
	chart, err := generate.LoadFrom(filepath.Join(f.landscape.Root, "charts", name))
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return "", fmt.Errorf("pack the chart %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	path, err := chartutil.Save(chart, directory)
	if err != nil {
		return "", fmt.Errorf("pack the chart %s: %w", name, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("pack the chart %s: %w", name, err)
	}
	return base64.StdEncoding.EncodeToString(content), nil
}

// createCloudProfile creates what Shoots refer to.
func (f *Fleet) createCloudProfile(ctx context.Context) error {
	objects, err := f.examples(provider + "/cloudprofile.yaml")
	if err != nil {
		return err
	}
	for _, object := range objects {
		versions := []any{map[string]any{"version": f.version}}
		if f.shootVersion != f.version {
			versions = append(versions, map[string]any{"version": f.shootVersion})
		}
		if err := unstructured.SetNestedSlice(object.Object, versions, "spec", "kubernetes", "versions"); err != nil {
			return fmt.Errorf("set the versions of the CloudProfile: %w", err)
		}
	}
	return f.applyObjects(ctx, objects)
}

// createCredentials creates the credentials that the Seed names for its DNS service. provider-local needs none: the Secret is empty.
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

// parse returns the objects of a YAML text. Name is for errors.
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

func (f *Fleet) applyObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := f.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
