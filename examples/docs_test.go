package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	etcdconfig "github.com/trellis-k8s/trellis/pkg/etcd/config"
)

const (
	configurationKind = "kind: ResourceManagerConfiguration\n"
	configurationHead = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\n" + configurationKind
)

var yamlBlock = regexp.MustCompile("(?s)(?:^|\n)```yaml\n(.*?\n)```")

// fragments are pages with blocks that are not whole objects or settings of the resource-manager. Values for the chart are checked by
// test/chart.
var fragments = []string{"admission-controller.md", "gardenlet.md", "gitops.md", "installation.md", "landscape.md", "pod-webhooks.md", "writing-extensions.md"}

// TestYAMLOfTheDocs: the API server accepts every object of every page, and the resource-manager every setting.
func TestYAMLOfTheDocs(t *testing.T) {
	c := newClient(t)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("found %d pages: %v", len(pages), err)
	}
	ofGarden, blocks := schemeOfGarden(t), 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "webshop/README.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range yamlBlock.FindAllSubmatch(content, -1) {
			blocks++
			if settings := string(match[1]); isConfiguration(t, page, settings) {
				load(t, page, settings)
				continue
			}
			var objects []*unstructured.Unstructured
			for _, object := range decode(t, page, match[1]) {
				switch {
				case object.GetKind() == "" && slices.Contains(fragments, filepath.Base(page)):
				case object.GetKind() == "":
					t.Errorf("%s holds YAML that is neither an object nor a setting: %s", page, match[1])
				case strings.Contains(object.GetAPIVersion(), ".config.k8s.io/"): // a file of an API server
				case object.GetKind() == "EtcdOperatorConfiguration":
					loadOperator(t, page, match[1])
				case ofGarden.Recognizes(object.GroupVersionKind()):
					checkOfGarden(t, ofGarden, page, object)
				default:
					objects = append(objects, namespaced(object)...)
				}
			}
			checkAccepted(t, c, objects)
		}
	}
	if blocks < 20 {
		t.Errorf("found only %d blocks", blocks)
	}
}

// namespaced returns an object with its namespace before it.
func namespaced(object *unstructured.Unstructured) []*unstructured.Unstructured {
	if object.GetNamespace() == "" {
		if object.GetKind() != "ConfigMap" && object.GetKind() != "ServiceAccount" && object.GetKind() != "Secret" {
			return []*unstructured.Unstructured{object}
		}
		object.SetNamespace("default")
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(object.GetNamespace())
	return []*unstructured.Unstructured{namespace, object}
}

// schemeOfGarden knows the kinds that the garden's API server serves, and provider configurations in them.
func schemeOfGarden(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{served.AddToScheme, providerlocalv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// checkOfGarden checks an object of the garden: each field is one of its kind, and it is valid.
func checkOfGarden(t *testing.T, scheme *runtime.Scheme, page string, object *unstructured.Unstructured) {
	t.Helper()
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		t.Errorf("%s: %s %s: %v", page, object.GetKind(), object.GetName(), err)
		return
	}
	scheme.Default(decoded)
	var problems field.ErrorList
	switch decoded := decoded.(type) {
	case *gardencorev1.ControllerDeployment:
		problems = corevalidation.ValidateControllerDeployment(decoded)
	case *corev1beta1.ControllerRegistration:
		problems = corevalidation.ValidateControllerRegistration(decoded)
	}
	if err := problems.ToAggregate(); err != nil {
		t.Errorf("%s: %s %s: %v", page, object.GetKind(), object.GetName(), err)
	}
}

// loadOperator reads the settings of the operator of etcd as it does.
func loadOperator(t *testing.T, page string, text []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := etcdconfig.LoadOperator(path); err != nil {
		t.Errorf("%s: %v", page, err)
	}
}

// isConfiguration reports whether all keys of a text are settings of the resource-manager.
func isConfiguration(t *testing.T, page, text string) bool {
	t.Helper()
	if strings.Contains(text, configurationKind) {
		return true
	}
	keys := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &keys); err != nil {
		return false // several documents
	}
	for key := range keys {
		switch key {
		case "controllers", "webhooks", "server", "leaderElection", "sourceClientConnection", "targetClientConnection", "logLevel":
		default:
			return false
		}
	}
	if len(keys) == 0 {
		t.Errorf("%s holds an empty block", page)
	}
	return true
}

// load reads settings as the resource-manager does, in a file that is complete.
func load(t *testing.T, page, text string) {
	t.Helper()
	if !strings.Contains(text, configurationKind) {
		text = configurationHead + text
	}
	if !strings.Contains(text, "leaderElection:") {
		text += "leaderElection: {resourceNamespace: garden}\n"
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := configv1alpha1.Load(file); err != nil {
		t.Errorf("%s: %v\n%s", page, err, text)
	}
}
