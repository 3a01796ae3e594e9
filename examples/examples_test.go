package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/examples"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// TestManifestsDecode reads every manifest, strictly: a key that is given twice is an error.
func TestManifestsDecode(t *testing.T) {
	found := 0
	err := fs.WalkDir(examples.Files, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".yaml" {
			return err
		}
		found++
		objects := readFile(t, name)
		if len(objects) == 0 {
			t.Errorf("%s holds no objects", name)
		}
		for _, object := range objects {
			if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
				t.Errorf("%s holds an object without apiVersion, kind or name", name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("only %d manifests are embedded", found)
	}
}

// TestAPIServerAcceptsTheWebshop has the API server check every manifest of the web shop.
func TestAPIServerAcceptsTheWebshop(t *testing.T) {
	c := newClient(t)
	var objects []*unstructured.Unstructured
	for _, folder := range []string{"webshop/base", "webshop/app", "webshop/sale"} {
		files, err := fs.Glob(examples.Files, folder+"/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%d manifests in %s: %v", len(files), folder, err)
		}
		for _, file := range files {
			objects = append(objects, readFile(t, file)...)
		}
	}
	checkAccepted(t, c, objects)
}

// TestAPIServerAcceptsHello has the API server check the Secret, the ManagedResource and what is in the Secret.
func TestAPIServerAcceptsHello(t *testing.T) {
	c := newClient(t)
	objects := readFile(t, "hello.yaml")
	checkAccepted(t, c, objects)

	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, secret); err != nil {
		t.Fatal(err)
	}
	for key, manifests := range secret.StringData {
		checkAccepted(t, c, decode(t, key, []byte(manifests)))
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[1].Object, mr); err != nil {
		t.Fatal(err)
	}
	if references := mr.Spec.SecretRefs; len(references) != 1 || references[0].Name != secret.Name {
		t.Errorf("the ManagedResource names the Secrets %v, want %s", references, secret.Name)
	}
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	config := shared.Get(t).Config()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{"../config/crd"}, ErrorIfPathMissing: true,
	}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkAccepted sends objects without effect. Only namespaces and definitions are really created, and first: the API
// server knows nothing of what would live in them otherwise.
func checkAccepted(t *testing.T, c client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		switch object.GetKind() {
		case "Namespace":
			apply(t, c, object)
		case "CustomResourceDefinition":
			apply(t, c, object)
			awaitEstablished(t, c, object.GetName())
		}
	}
	for _, object := range objects {
		apply(t, c, object, client.DryRunAll)
	}
}

func apply(t *testing.T, c client.Client, object *unstructured.Unstructured, options ...client.ApplyOption) {
	t.Helper()
	options = append(options, client.FieldOwner("examples-test"))
	copied := object.DeepCopy() // the answer is read into it
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(copied), options...); err != nil {
		t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

func awaitEstablished(t *testing.T, c client.Client, name string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
			return slices.ContainsFunc(crd.Status.Conditions, established), err
		})
	if err != nil {
		t.Fatalf("%s is not established: %+v: %v", name, crd.Status.Conditions, err)
	}
}

func established(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
	return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
}

func readFile(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	content, err := examples.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, name, content)
}

// decode reads the objects of a file, without the documents that hold nothing but comments.
func decode(t *testing.T, name string, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
