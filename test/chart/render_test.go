package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/pkg/rbac"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestGeneratedFiles checks that the generated files of the chart, the plain YAML below config/, and the table of
// values are up to date.
func TestGeneratedFiles(t *testing.T) {
	t.Parallel()
	files, err := generate.All(root(t))
	kit.Must(t, err)
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is outdated: run make generate (%v)", path, err)
		}
	}
	for _, directory := range []string{"config/seed", "config/shoot/source", "config/shoot/target"} {
		entries, err := os.ReadDir(filepath.Join(root(t), directory))
		kit.Must(t, err)
		for _, entry := range entries {
			if path := directory + "/" + entry.Name(); files[path] == nil {
				t.Errorf("%s is no longer generated: remove it", path)
			}
		}
	}
}

// objectsOf returns the objects in rendered files.
func objectsOf(tb testing.TB, files map[string]string) []*unstructured.Unstructured {
	tb.Helper()
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "NOTES.txt" {
			continue
		}
		for document := range strings.SplitSeq(files[name], "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
				tb.Fatalf("%s: %v\n%s", name, err, document)
			}
			if len(object.Object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

func render(tb testing.TB, loaded *chartv2.Chart, values map[string]any, kinds ...string) []*unstructured.Unstructured {
	tb.Helper()
	files, err := generate.Render(loaded, "garden", values, kinds...)
	kit.Must(tb, err)
	return objectsOf(tb, files)
}

// find returns the objects of a kind.
func find(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool { return object.GetKind() != kind })
}

// configOf returns the configuration file among objects, validated as the resource-manager does.
func configOf(tb testing.TB, objects []*unstructured.Unstructured) *configv1alpha1.ResourceManagerConfiguration {
	tb.Helper()
	text, _, err := unstructured.NestedString(find(objects, "ConfigMap")[0].Object, "data", "config.yaml")
	kit.Must(tb, err)
	config, err := configv1alpha1.Parse([]byte(text))
	if err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	return config
}

// rulesOf returns the rights of roles as lines: cluster, namespace, and one right.
func rulesOf(tb testing.TB, objects []*unstructured.Unstructured) []string {
	tb.Helper()
	var lines []string
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.Role
		kit.Must(tb, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		cluster := role.Name[strings.LastIndex(role.Name, ":")+1:]
		lines = append(lines, linesOf(cluster, role.Namespace, role.Rules)...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func linesOf(cluster, namespace string, rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					lines = append(lines, fmt.Sprintf("%s in %q: %s %v", cluster, namespace, right(verb, group, resource), rule.ResourceNames))
				}
			}
		}
	}
	return lines
}

// TestRightsAreThoseOfThePackage renders roles for many configurations, and compares them with the rights that the
// package computes from the rendered configuration file.
func TestRightsAreThoseOfThePackage(t *testing.T) {
	t.Parallel()
	loaded, random := load(t), rand.New(rand.NewPCG(1, 2))
	most := 0
	for i := range 60 {
		config := randomConfig(random, i)
		objects := render(t, loaded, map[string]any{
			"config": config, "rbac": map[string]any{"target": map[string]any{"admin": false}},
		})
		want, err := rbac.For(configOf(t, objects))
		kit.Must(t, err)
		var lines []string
		for cluster, rules := range map[string]rbac.Rules{"source": want.Source, "target": want.Target} {
			lines = append(lines, linesOf(cluster, "", rules.Cluster)...)
			for namespace, ones := range rules.Namespaced {
				lines = append(lines, linesOf(cluster, namespace, ones)...)
			}
		}
		slices.Sort(lines)
		lines = slices.Compact(lines)
		if got := rulesOf(t, objects); !slices.Equal(got, lines) {
			t.Fatalf("for %v the chart grants\n%s\nwant\n%s", config, strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
		most = max(most, len(lines))
	}
	if most < 60 {
		t.Errorf("no configuration has more than %d rights", most)
	}
}

// randomConfig returns a configuration in which no parts, all parts or some parts are enabled.
func randomConfig(random *rand.Rand, i int) map[string]any {
	chance := func() bool { return i == 1 || i > 1 && random.IntN(3) == 0 }
	namespaces := func() []any {
		if i > 1 && random.IntN(2) == 0 {
			return []any{"garden", "other"}
		}
		return []any{}
	}
	section := func(names ...string) map[string]any {
		made := map[string]any{}
		for _, name := range names {
			if chance() {
				made[name] = map[string]any{"enabled": random.IntN(5) > 0 || i == 1}
			}
		}
		return made
	}
	with := func(section map[string]any, name, key string, value any) {
		if settings, is := section[name].(map[string]any); is && chance() {
			settings[key] = value
		}
	}
	controllers := section("garbageCollector", "csrApprover", "istioClusterConfiguration", "networkPolicy", "nodeCriticalComponents",
		"nodeAgentReconciliationDelay", "tokenRequestor", "tokenInvalidator")
	with(controllers, "csrApprover", "machineNamespace", "machines")
	with(controllers, "networkPolicy", "ingressControllerSelector", map[string]any{"namespace": "ingress"})
	with(controllers, "nodeCriticalComponents", "namespaces", namespaces())
	with(controllers, "tokenRequestor", "cleanUp", true)
	with(controllers, "tokenRequestor", "serviceAccountNamespaces", namespaces())
	with(controllers, "tokenRequestor", "targetSecretNamespaces", namespaces())
	if chance() {
		controllers["clusterID"] = []any{"<default>", "<cluster>", "mine"}[random.IntN(3)]
	}
	hooks := section("crdDeletionProtection", "endpointSliceHints", "extensionValidation", "highAvailabilityConfig", "manualDeletionProtection",
		"nodeAgentAuthorizer",
		"podKubeAPIServerLoadBalancing", "podSchedulerName", "projectedTokenMount", "seccompProfile", "systemComponentsConfig", "tokenInvalidator")
	with(hooks, "nodeAgentAuthorizer", "machineNamespace", "machines")
	config := map[string]any{"controllers": controllers, "webhooks": hooks}
	if chance() {
		config["leaderElection"] = map[string]any{"leaderElect": random.IntN(2) == 0, "resourceName": "mine"}
	}
	config["sourceClientConnection"] = map[string]any{"namespaces": namespaces()}
	config["targetClientConnection"] = map[string]any{"namespaces": namespaces()}
	return config
}

// TestWebhooksAreThoseOfTheTable compares the webhook configurations of the chart with those of the package.
func TestWebhooksAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	loaded, settings := load(t), map[string]any{}
	for _, row := range webhooks.Table() {
		settings[row.Setting] = map[string]any{"enabled": true}
	}
	for mode, placement := range map[string]webhooks.Placement{"seed": {NamePrefix: "my-"}, "shoot-target": {Shoot: true, NamePrefix: "my-"}} {
		reach := webhookserver.AtService("garden", "my-gardener-resource-manager", 443, nil)
		if placement.Shoot {
			reach = webhookserver.AtURL("https://my.example.org:443", nil)
		}
		objects := render(t, loaded, map[string]any{
			"mode": mode, "namePrefix": "my-", "config": map[string]any{"webhooks": settings},
			"webhooks": map[string]any{"url": "https://my.example.org:443"},
		})
		mutating := webhooks.MutatingConfiguration(webhooks.Table(), placement, reach)
		wantSame(t, find(objects, mutating.Kind)[0], "my-"+mutating.Name, mutating.Webhooks)
		validating := webhooks.ValidatingConfiguration(webhooks.Table(), placement, reach)
		if placement.Shoot {
			if validating != nil || len(find(objects, "ValidatingWebhookConfiguration")) > 0 {
				t.Error("the chart renders validating webhooks for a shoot")
			}
			continue
		}
		wantSame(t, find(objects, validating.Kind)[0], "my-"+validating.Name, validating.Webhooks)
	}
}

func wantSame[W admissionregistrationv1.MutatingWebhook | admissionregistrationv1.ValidatingWebhook](
	t *testing.T, got *unstructured.Unstructured, name string, want []W,
) {
	t.Helper()
	var configuration struct{ Webhooks []W }
	encoded, err := json.Marshal(got.Object)
	kit.Must(t, err)
	kit.Must(t, json.Unmarshal(encoded, &configuration))
	if got.GetName() != name || !reflect.DeepEqual(configuration.Webhooks, want) {
		t.Errorf("%s %s differs from the table:\n%+v\nwant %s\n%+v", got.GetKind(), got.GetName(), configuration.Webhooks, name, want)
	}
}

// TestWrongValues checks that the error of the schema names the wrong value and the reason.
func TestWrongValues(t *testing.T) {
	t.Parallel()
	loaded := load(t)
	for values, want := range map[string][]string{
		"mode: sead":                           {"/mode", "'seed', 'shoot', 'shoot-target'"},
		"replicas: two":                        {"/replicas", "want integer"},
		"replicas: -1":                         {"/replicas", "minimum"},
		"replica: 3":                           {"'replica' not allowed"},
		"image: {tagg: v1}":                    {"/image", "'tagg' not allowed"},
		"image: {digest: abc}":                 {"/image/digest", "does not match pattern"},
		"config: text":                         {"/config", "want object"},
		"ports: {webhooks: 100000}":            {"/ports/webhooks", "maximum"},
		"rbac: {target: {rules: [{verb: a}]}}": {"/rbac/target/rules/0", "'verb' not allowed"},
		"priorityClass: {value: 2000000000}":   {"/priorityClass/value", "maximum"},
		"serviceMonitor: {interval: soon}":     {"/serviceMonitor/interval", "does not match pattern"},
		"namePrefix: Upper-":                   {"/namePrefix", "does not match pattern"},
		"mode: shoot-target\nconfig: {webhooks: {seccompProfile: {enabled: true}}}": {"webhooks.url", "for example https://"},
	} {
		_, err := generate.Render(loaded, "garden", valuesOf(t, values))
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error lacks %q: %v", values, part, err)
			}
		}
	}
}

// TestServiceMonitor checks that a ServiceMonitor is rendered if it is requested and the cluster has the kind.
func TestServiceMonitor(t *testing.T) {
	t.Parallel()
	loaded, asked := load(t), valuesOf(t, "serviceMonitor: {create: true, labels: {prometheus: main}}")
	const kind = "monitoring.coreos.com/v1/ServiceMonitor"
	if got := find(render(t, loaded, asked, kind), "ServiceMonitor"); len(got) != 1 || got[0].GetLabels()["prometheus"] != "main" {
		t.Errorf("got %v", got)
	}
	if got := find(render(t, loaded, map[string]any{}, kind), "ServiceMonitor"); len(got) != 0 {
		t.Errorf("rendered without a request: %v", got)
	}
	files, err := generate.Render(loaded, "garden", asked)
	kit.Must(t, err)
	if got := find(objectsOf(t, files), "ServiceMonitor"); len(got) != 0 || !strings.Contains(files["NOTES.txt"], "No ServiceMonitor was created") {
		t.Errorf("without the kind: %v\n%s", got, files["NOTES.txt"])
	}
}

// TestPage checks that the page has a port, only for Pods with a label, if the configuration enables it, also with
// all defaults.
func TestPage(t *testing.T) {
	t.Parallel()
	loaded := load(t)
	without, err := generate.Render(loaded, "garden", valuesOf(t, "config: {server: {ui: null}}"))
	kit.Must(t, err)
	for name, content := range without {
		if strings.Contains(content, "8443") || strings.Contains(content, "name: ui,") {
			t.Errorf("%s has a port for a disabled page:\n%s", name, content)
		}
	}
	for values, port := range map[string]string{"config: {server: {ui: {}}}": "8443", "config: {server: {ui: {bindAddress: 0.0.0.0}}}\nports: {ui: 9443}": "9443"} {
		files, err := generate.Render(loaded, "garden", valuesOf(t, values))
		kit.Must(t, err)
		for name, want := range map[string]string{
			"configmap.yaml": "port: " + port, "deployment.yaml": "{name: ui, containerPort: " + port + ", protocol: TCP}",
			"service.yaml":       "{name: ui, port: " + port + ", targetPort: " + port + ", protocol: TCP}",
			"networkpolicy.yaml": "networking.resources.gardener.cloud/to-gardener-resource-manager-tcp-" + port + ": allowed",
		} {
			found := ""
			for path, content := range files {
				if strings.HasSuffix(path, name) {
					found = content
				}
			}
			if !strings.Contains(found, want) {
				t.Errorf("%s: %s has no %s:\n%s", values, name, want, found)
			}
		}
	}
}

// TestConfigIsTakenAsItIs checks that the file has the configuration of the values unchanged, and that a change
// replaces the Pods.
func TestConfigIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	loaded := load(t)
	checksum := func(values string) string {
		objects := render(t, loaded, valuesOf(t, values))
		sum, _, err := unstructured.NestedString(find(objects, "Deployment")[0].Object, "spec", "template", "metadata", "annotations", "checksum/config")
		kit.Must(t, err)
		return sum
	}
	const some = `config: {sourceClientConnection: {burst: 2000000, namespaces: [a]}, leaderElection: {leaderElect: false, resourceNamespace: b},
  controllers: {managedResource: {syncPeriod: 1h}}}`
	config := configOf(t, render(t, loaded, valuesOf(t, some)))
	if config.SourceClientConnection.Burst != 2000000 || *config.LeaderElection.LeaderElect || config.LeaderElection.ResourceNamespace != "b" ||
		config.Controllers.ManagedResource.SyncPeriod.Hours() != 1 || config.LeaderElection.ResourceName != "gardener-resource-manager" {
		t.Errorf("the configuration is %+v", config)
	}
	const protection = "namePrefix: my-\nconfig: {webhooks: {manualDeletionProtection: {enabled: true}}}"
	allowed := configOf(t, render(t, loaded, valuesOf(t, protection))).Webhooks.ManualDeletionProtection.AllowedUsers
	if want := []string{
		"system:serviceaccount:garden:gardener-operator", "system:serviceaccount:garden:gardenlet", "system:serviceaccount:garden:my-gardener-resource-manager",
	}; !slices.Equal(allowed, want) {
		t.Errorf("the users who may delete are %v, want %v", allowed, want)
	}
	if checksum(some) == checksum("") || checksum(some) != checksum(some+"\nreplicas: 3") {
		t.Error("the checksum does not depend on exactly the configuration")
	}
}

// TestKustomize builds the plain YAML with kustomize, modified by a further kustomization.
func TestKustomize(t *testing.T) {
	t.Parallel()
	for directory, kinds := range map[string][]string{
		"config/seed":         {"ClusterRole", "ConfigMap", "CustomResourceDefinition", "Deployment", "MutatingWebhookConfiguration", "PriorityClass"},
		"config/shoot/source": {"ConfigMap", "Deployment", "Role", "Secret"},
		"config/shoot/target": {"ClusterRole", "MutatingWebhookConfiguration"},
	} {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root(t), directory))
		kit.Must(t, err)
		found := map[string]bool{}
		for _, resource := range built.Resources() {
			found[resource.GetKind()] = true
		}
		for _, kind := range kinds {
			if !found[kind] {
				t.Errorf("%s has no %s, but %v", directory, kind, slices.Sorted(maps.Keys(found)))
			}
		}
	}
}
