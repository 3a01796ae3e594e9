package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestEncodeRelations writes the dependencies of a ManagedResource and its options for fields and finalizers as YAML.
func TestEncodeRelations(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	kit.Must(t, os.WriteFile(empty, nil, 0o600))
	encode := func(args ...string) outcome {
		return execute(call{in: configMap, args: append([]string{"--kubeconfig", empty, "encode", "shop", "-n", "garden", "-f", "-"}, args...)})
	}
	encode("--depends-on", "base:RolledOut:Creation,seed/dns", "--delete-after", "jobs", "--finalize-deletion-after", "1h",
		"--only-on-change", "Worker.extensions.gardener.cloud:/metadata/annotations/gardener.cloud~1operation").says(t, 0,
		"resources.gardener.cloud/finalize-deletion-after: 1h0m0s",
		"dependsOn:\n - for: Creation\n name: base\n namespace: garden\n until: RolledOut\n - name: dns\n namespace: seed\n",
		"deleteAfter:\n - name: jobs\n namespace: garden\n",
		"onlyOnChange:\n - group: extensions.gardener.cloud\n kind: Worker\n paths:\n - /metadata/annotations/gardener.cloud~1operation\n",
	)
	encode("--delete-after", "").says(t, 0, "deleteAfter: []\n")
	if out := encode().out; strings.Contains(out, "deleteAfter") || strings.Contains(out, "dependsOn") || strings.Contains(out, "driftDetection") {
		t.Errorf("the output contains fields that were not requested:\n%s", out)
	}
	encode("--depends-on", "base:Ready").says(t, 2, `!--depends-on: the dependency "base:Ready" has an invalid "Ready"`)
	encode("--delete-after", "base:Healthy").says(t, 2, `!--delete-after: "base:Healthy" is not the name of a ManagedResource`)
	encode("--only-on-change", "spec").says(t, 2, `!--only-on-change: "spec" does not name a field`)
	encode("--finalize-deletion-after", "-1h").says(t, 2, "!--finalize-deletion-after is -1h0m0s: it must be positive")
}

// TestRelations shows the relations in get, tree and why while a ManagedResource waits, and while a deletion waits.
func TestRelations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "base", state.Failed, strings.Replace(configMap, "name: settings", "name: Base", 1))
	w.runCall(call{
		in: strings.ReplaceAll(configMap, "$NS", namespace),
		args: []string{
			"create", "shop", "-n", namespace, "-f", "-", "--depends-on", "base:RolledOut:Creation", "--delete-after", "jobs",
			"--only-on-change", "ConfigMap:/metadata/annotations/example.org~1run", "--finalize-deletion-after", "1h",
		},
	}).says(t, 0)
	w.await(t, namespace, "shop", state.Waiting)
	w.run("get", "-n", namespace, "-o", "wide").says(t, 0, "DEPENDS ON", "base:RolledOut:Creation")
	dependency := "depends on " + namespace + "/base Failed must be applied, healthy and rolled out; changes after the creation do not wait for it"
	w.run("tree", "-n", namespace).says(t, 0, dependency, "is deleted after "+namespace+"/jobs")
	w.run("tree", "shop", "-n", namespace, "-o", "wide").says(t, 0, "sends only on changes ConfigMap:/metadata/annotations/example.org~1run",
		"removes finalizers 1h0m0s after its deletion begins")
	w.run("tree", "shop", "-n", namespace, "-o", "json").says(t, 0, `"until": "RolledOut"`, `"deletedAfter": [`)
	w.run("why", "shop", "-n", namespace).says(t, 0, "ManagedResource "+namespace+"/shop is Waiting",
		"Depends on "+namespace+"/base, which must be applied, healthy and rolled out; changes after the creation do not wait for it. It is Failed.",
		"Is deleted after "+namespace+"/jobs.", "Sends only on changes: ConfigMap:/metadata/annotations/example.org~1run",
		"Removes the finalizers of its objects 1h0m0s after its deletion begins.", "ManagedResource "+namespace+"/base is Failed")

	// base has no deleteAfter: its deletion waits for shop.
	kit.Must(t, w.client.Delete(t.Context(), managedResource(namespace, "base")))
	w.eventually(t, 0, []string{"ManagedResource " + namespace + "/base is Deleting", "ManagedResource " + namespace + "/shop is Waiting"}, "why", "base", "-n", namespace)
	kit.Must(t, w.client.Delete(t.Context(), managedResource(namespace, "shop")))
}
