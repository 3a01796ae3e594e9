// Package components tests the objects of components on a real API server.
package components

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/trellis-k8s/trellis/pkg/component/crds"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// TestObjectsAreAccepted checks that the API server accepts all objects of all components in the golden files, and knows
// all of their fields. Nothing is stored, so that the registered webhooks are not called.
func TestObjectsAreAccepted(t *testing.T) {
	c := connectTo(t, shared.Get(t).Config())
	files, err := filepath.Glob("../../pkg/component/*/testdata/*.yaml")
	kit.Must(t, err)
	if len(files) < 15 {
		t.Fatalf("found %d golden files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(file)))+"/"+filepath.Base(file), func(t *testing.T) {
			for _, object := range objectsIn(t, file) {
				ensureNamespace(t, c, object.GetNamespace())
				err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll)
				if err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}
		})
	}
}

// connectTo defines the kinds of the components' objects, as in a seed.
func connectTo(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	definitions, err := crds.Objects(crds.Values{Groups: []crds.Group{
		crds.ManagedResources, crds.Extensions, crds.ShootExtensions, crds.Etcd, crds.VerticalPodAutoscaler, crds.Istio, crds.GatewayAPI,
	}})
	kit.Must(t, err)
	path := filepath.Join(t.TempDir(), "definitions.yaml")
	var text bytes.Buffer
	for _, definition := range definitions {
		object, isUnstructured := definition.(*unstructured.Unstructured)
		if !isUnstructured {
			t.Fatalf("%T is not unstructured", definition)
		}
		content, err := object.MarshalJSON()
		kit.Must(t, err)
		text.WriteString("---\n")
		text.Write(content)
	}
	kit.Must(t, os.WriteFile(path, text.Bytes(), 0o600))
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{path}, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout})
	kit.Must(t, err)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	kit.Must(t, err)
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

func objectsIn(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	kit.Must(t, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		kit.Must(t, err)
		objects = append(objects, object)
	}
}

func ensureNamespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	if name != "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		kit.Must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), namespace)))
	}
}
