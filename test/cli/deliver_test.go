package cli

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

func fieldOwner(name string) client.FieldOwner { return client.FieldOwner(name) }

// TestCreateSplits delivers more data than a Secret can hold, and decodes the same objects.
func TestCreateSplits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	folder := t.TempDir()
	const count, size = 4, 450_000 // random bytes, which do not compress
	for i := range count {
		random := make([]byte, size)
		_, _ = rand.Read(random)
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large-%d, namespace: %s}\ndata: {random: %s}\n",
			i, namespace, base64.StdEncoding.EncodeToString(random))
		kit.Must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.yaml", i)), []byte(text), 0o600))
	}
	kit.Must(t, os.WriteFile(filepath.Join(folder, "README.md"), []byte("no manifest"), 0o600))
	w.run("create", "large", "-n", namespace, "-f", folder, "--wait").says(t, 0, "created (4 objects", "in 2 Secrets)", "ready")
	w.run("create", "large", "-n", namespace, "-f", folder).says(t, 0, "unchanged (4 objects")
	w.run("get", "large", "-n", namespace, "-o", "wide").says(t, 0, "large-", ",large-")
	decoded := w.run("decode", "large", "-n", namespace, "-o", "json")
	encoded := w.runCall(call{args: []string{"encode", "large", "-n", namespace, "-f", folder}})
	again := w.runCall(call{args: []string{"decode", "-f", "-", "-o", "json"}, in: encoded.out})
	if decoded.code != 0 || !reflect.DeepEqual(again, decoded) {
		t.Errorf("encode and decode differ from the delivered manifests (%d and %d bytes)", len(again.out), len(decoded.out))
	}
}

func TestEncodeNeedsNoCluster(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	kit.Must(t, os.WriteFile(empty, nil, 0o600))
	args := []string{"--kubeconfig", empty, "encode", "shop", "-n", "garden", "-f", "../../examples/webshop/app"}
	encoded := execute(call{args: args})
	encoded.says(t, 0, "kind: ManagedResource", "immutable: true", "data.yaml.br", "resources.gardener.cloud/garbage-collectable-reference: \"true\"",
		"reference.resources.gardener.cloud/secret-")
	if again := execute(call{args: args}); again != encoded {
		t.Error("equal manifests are encoded differently")
	}
	decoded := execute(call{args: []string{"decode", "-f", "-"}, in: encoded.out})
	decoded.says(t, 0, "# at index 0 in 'data.yaml.br' in secret 'garden/shop-", "kind: HorizontalPodAutoscaler", "kind: Coupon")
	execute(call{args: []string{"decode", "-f", "-", "-o", "name"}, in: encoded.out}).says(t, 0, "deployment.apps/webshop/storefront\n")
	execute(call{args: append(args, "--plain")}).says(t, 0, "data.yaml:")
	execute(call{args: []string{"decode", "-f", "../../README.md"}}).says(t, 2, "!README.md")
}

func TestDecodeMasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run("decode", "webshop-base", "-n", "garden").says(t, 0, "DATABASE_PASSWORD: not-a-real-password", "# at index 0 in 'data.yaml' in secret 'garden/webshop-base-")
	if out := w.run("decode", "webshop-base", "-n", "garden", "--mask"); strings.Contains(out.out, "not-a-real-password") || !strings.Contains(out.out, "DATABASE_PASSWORD: '***'") {
		t.Errorf("--mask shows:\n%s", out.out)
	}
	w.run("decode", "webshop-base", "-n", "garden", "--set", "nothing").says(t, 2, "!no Secret garden/nothing exists")
}

func TestCreateRefusesBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	create := func(in string, args ...string) outcome {
		return w.runCall(call{args: append([]string{"create", "shop", "-n", namespace}, args...), in: in})
	}
	create("").says(t, 2, "!specify the manifests with -f, -k or --chart")
	create("", "-f", "-").says(t, 2, "!the manifests contain no objects")
	create("a: b: c", "-f", "-").says(t, 2, "!could not decode resource at index 0 in '-'", "!it is not valid YAML")
	create("", "-f", t.TempDir()).says(t, 2, "!no manifests found in")
	create("", "-f", "nowhere").says(t, 2, "!nowhere")
	w.runCall(call{args: []string{"create", "Shop", "-n", namespace, "-f", "-"}, in: configMap}).says(t, 2, `!"Shop" is not a valid name for a ManagedResource`)
	w.runCall(call{args: []string{"create", "shop", "-n", "nowhere", "-f", "-"}, in: configMap}).says(t, 2, `!namespaces "nowhere" not found`)

	w.deliver(t, namespace, "shop", state.Ready, configMap)
	other := strings.Replace(configMap, "blue", "green", 1)
	patch := client.RawPatch("application/apply-patch+yaml", fmt.Appendf(nil, `{"apiVersion":"resources.gardener.cloud/v1alpha1","kind":"ManagedResource",
"metadata":{"name":"shop","namespace":%q},"spec":{"secretRefs":[{"name":%q}],"class":"x"}}`, namespace, w.secretOf(t, namespace, "shop")))
	kit.Must(t, w.client.Patch(t.Context(), managedResource(namespace, "shop"), patch, fieldOwner("gardenlet"), client.ForceOwnership))
	create(strings.ReplaceAll(other, "$NS", namespace), "-f", "-").says(t, 2, "!is managed by another tool", "!gardenlet", "!--force")
	create(strings.ReplaceAll(other, "$NS", namespace), "-f", "-", "--force").says(t, 0, "changed")
}

// TestCreateFromKustomization delivers a kustomization with a definition and more than 1 MiB, and decodes the same objects.
func TestCreateFromKustomization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	folder := t.TempDir()
	for name, content := range map[string]string{
		"kustomization.yaml": "namespace: " + namespace + "\nnamePrefix: my-\nresources: [crd.yaml, settings.yaml]\n" +
			"configMapGenerator:\n- {name: one, files: [first]}\n- {name: two, files: [second]}\n",
		"crd.yaml":      strings.ReplaceAll(strings.Split(newKind, "---\n")[2], "cli.example.org", "kustomize.example.org"),
		"settings.yaml": strings.ReplaceAll(configMap, "$NS", "default"),
		"first":         randomText(),
		"second":        randomText(),
	} {
		kit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	w.run("diff", "shop", "-n", namespace, "-k", folder, "--brief").says(t, 1, "4 to create", "+ ConfigMap "+namespace+"/my-settings")
	w.run("create", "shop", "-n", namespace, "-k", folder, "--wait").says(t, 0, "created (4 objects", "Secrets)", "ready")
	decoded := w.run("decode", "shop", "-n", namespace, "-o", "json")
	again := w.runCall(call{args: []string{"decode", "-f", "-", "-o", "json"}, in: w.run("encode", "shop", "-n", namespace, "-k", folder).out})
	if decoded.code != 0 || !reflect.DeepEqual(again, decoded) {
		t.Errorf("encode and decode differ from the delivered manifests (%d and %d bytes)", len(again.out), len(decoded.out))
	}
	w.run("tree", "shop", "-n", namespace).says(t, 0, "ConfigMap "+namespace+"/my-one-", "Present")
	w.run("diff", "shop", "-n", namespace, "-k", folder).says(t, 0, "4 unchanged")
	w.run("create", "shop", "-n", namespace, "-k", t.TempDir()).says(t, 2, "!build the kustomization")
}

// TestCreateFromChart delivers a Helm chart with a definition, one of its objects, and more than 1 MiB, and decodes the same objects.
func TestCreateFromChart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	folder := t.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml":               "apiVersion: v2\nname: shop\nversion: 1.0.0\nkubeVersion: '>=1.30.0-0'\n",
		"values.yaml":              "colour: blue\n",
		"values.schema.json":       `{"properties": {"colour": {"type": "string"}}}`,
		"crds/gadget.yaml":         strings.ReplaceAll(strings.Split(newKind, "---\n")[2], "cli.example.org", "chart.example.org"),
		"files/1":                  randomText(),
		"files/2":                  randomText(),
		"templates/NOTES.txt":      "Enjoy.",
		"templates/gadget.yaml":    "apiVersion: chart.example.org/v1\nkind: Gadget\nmetadata: {name: {{ .Release.Name }}}\n",
		"templates/settings.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: {{ .Values.colour }}}\n",
		"templates/large.yaml":     "{{ range $i := list 1 2 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: large-{{ $i }}}\ndata: {random: {{ $.Files.Get (printf \"files/%d\" $i) }}}\n{{ end }}",
		"templates/hook.yaml":      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare, annotations: {helm.sh/hook: pre-install}}\n",
		"templates/tests/web.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: probe, annotations: {helm.sh/hook: test}}\n",
	} {
		kit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		kit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	chart := []string{"shop", "-n", namespace, "--chart", folder, "--set-value", "colour=green", "--kube-version", "1.33"}
	w.run(append([]string{"diff", "--brief"}, chart...)...).says(t, 1, "5 to create", "+ Gadget "+namespace+"/shop")
	out := w.run(append([]string{"create", "--wait"}, chart...)...)
	out.says(t, 0, "created (5 objects", "Secrets)", "ready", "!Omitted, because chart hooks are not run: Job prepare (pre-install).")
	if strings.Contains(out.err, "probe") {
		t.Errorf("the output mentions the tests of the chart: %s", out.err)
	}
	decoded := w.run("decode", "shop", "-n", namespace, "-o", "json")
	again := w.runCall(call{args: []string{"decode", "-f", "-", "-o", "json"}, in: w.run(append([]string{"encode"}, chart...)...).out})
	if decoded.code != 0 || !reflect.DeepEqual(again, decoded) {
		t.Errorf("encode and decode differ from the delivered manifests (%d and %d bytes)", len(again.out), len(decoded.out))
	}
	w.run("decode", "shop", "-n", namespace, "-o", "name").says(t, 0,
		"gadgets.chart.example.org\n", "/settings\n", "/large-1\n", "/large-2\n", "/shop\n")
	if colour := w.colour(t, namespace, "settings"); colour != "green" {
		t.Errorf("the colour is %q", colour)
	}
	w.run(append([]string{"diff"}, chart...)...).says(t, 0, "5 unchanged")
	w.run(append([]string{"diff", "--brief"}, append(chart, "--set-value", "colour=red")...)...).says(t, 1, "1 to change, 4 unchanged")
	w.run(append([]string{"create"}, append(chart, "--set-value", "colour=7")...)...).says(t, 2, "!invalid values for the chart", "!/colour", "!want string")
	w.run("create", "shop", "-n", namespace, "--chart", folder).says(t, 2, "!requires Kubernetes >=1.30.0-0", "!--kube-version")
	w.run("create", "shop", "-n", namespace, "--chart", t.TempDir()).says(t, 2, "!is not a valid chart: Chart.yaml file is missing")
	w.run("create", "shop", "-n", namespace, "-f", folder).says(t, 2, "!is a Helm chart: use --chart")
	w.run("create", "shop", "-n", namespace, "-f", folder, "--set-value", "a=b").says(t, 2, "!--set-value requires --chart")
}

// randomText returns a text that does not compress to less than three quarters of its size.
func randomText() string {
	content := make([]byte, 600_000)
	_, _ = rand.Read(content)
	return base64.StdEncoding.EncodeToString(content)
}

// TestSecretsGoWithTheirManagedResource checks that the Secrets of all revisions that create has delivered are deleted
// with their ManagedResource, although no garbage collector of a resource-manager runs.
func TestSecretsGoWithTheirManagedResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	deliver := func(value string) {
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: %s}\ndata: {a: %s}\n", namespace, value)
		w.runCall(call{args: []string{"create", "owner", "-n", namespace, "-f", "-", "--wait"}, in: text}).says(t, 0, "ready")
	}
	secrets := func() int {
		list := &corev1.SecretList{}
		kit.Must(t, w.client.List(t.Context(), list, client.InNamespace(namespace)))
		return len(list.Items)
	}
	deliver("one")
	deliver("two")
	if count := secrets(); count != 2 {
		t.Fatalf("%d Secrets, want one for each revision", count)
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = namespace, "owner"
	kit.Must(t, w.client.Delete(t.Context(), mr))
	kit.EventuallyWithin(t, 3*time.Minute, "the Secrets are deleted with the ManagedResource", func() string { // its kind is discovered within 30 s
		if count := secrets(); count > 0 {
			return fmt.Sprintf("%d are left", count)
		}
		return ""
	})
}
