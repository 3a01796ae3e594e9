package flow

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubectlmr "github.com/trellis-k8s/trellis/cmd/kubectl-mr/app"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var siteBundles = []string{"site-network", "site-settings", "site-app"}

// TestRenderedIsWhatIsEmitted deletes everything that the flow has emitted, and pipes the output of kubectl mr render
// for a site into kubectl apply.
func TestRenderedIsWhatIsEmitted(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.cp.Kubeconfig(), []string{w.namespace}, "")
	_, stop := w.startFlow("v1")
	w.declare(map[string]string{"message": "hello", "type": "local", "region": "here", "zones": "a"})
	w.answer("10.0.0.0/16")
	w.eventuallyReported("Succeeded", `"progress":100`)
	stop()
	emitted, network := map[string]*resourcesv1alpha1.ManagedResource{}, w.network()
	for _, name := range siteBundles {
		emitted[name] = w.mr(name)
	}
	rendered := w.shell("kubectl get configmap/site infrastructure/site -o yaml | kubectl-mr render -f - --flow-version v1")

	for _, name := range siteBundles {
		kit.Must(t, w.client.Delete(t.Context(), emitted[name]))
	}
	kit.EventuallyTrue(t, "all emitted objects are deleted", func() bool {
		for _, name := range siteBundles {
			if w.mr(name) != nil || name != "site-network" && w.get(&corev1.ConfigMap{}, name) {
				return false
			}
		}
		return w.network() == nil
	})
	file := filepath.Join(t.TempDir(), "rendered.yaml")
	kit.Must(t, os.WriteFile(file, []byte(rendered), 0o600))
	w.shell("kubectl apply -f " + file)
	w.answer("10.0.0.0/16")

	w.eventuallyData("site-settings", "nodes", "10.0.0.0/16")
	w.eventuallyData("site-app", "message", "hello")
	if again := w.network(); !reflect.DeepEqual(again.Object["spec"], network.Object["spec"]) || !reflect.DeepEqual(again.GetAnnotations(), network.GetAnnotations()) {
		t.Errorf("the network is %v, before it was %v", again.Object, network.Object)
	}
	for _, name := range siteBundles {
		got, want := w.mr(name), emitted[name]
		if !reflect.DeepEqual(got.Spec, want.Spec) || !reflect.DeepEqual(got.Labels, want.Labels) ||
			got.Annotations[flow.AnnotationDigest] != want.Annotations[flow.AnnotationDigest] {
			t.Errorf("%s is\n%+v %v %v\nbefore it was\n%+v %v %v", name, got.Spec, got.Labels, got.Annotations, want.Spec, want.Labels, want.Annotations)
		}
	}
	if says := w.shell("kubectl get configmap/site infrastructure/site -o yaml | kubectl-mr diff -n $NAMESPACE --render -f - --flow-version v1"); strings.Contains(says, "would") {
		t.Errorf("diff --render of the unchanged state prints\n%s", says)
	}
	// The flow recognizes the applied objects as its own and has nothing to write.
	requests, _ := w.startFlow("v1")
	w.eventuallyReported("Succeeded", `"progress":100`)
	quiet(t, requests)
	for _, write := range writes(requests) {
		if !strings.HasSuffix(write, "/configmaps/site") {
			t.Errorf("the flow wrote %s", write)
		}
	}
}

// TestDiffOfRenderedShowsWhatIsDeleted compares a declaration with fewer apps with the state of a cluster, with and
// without the UID of the site.
func TestDiffOfRenderedShowsWhatIsDeleted(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.cp.Kubeconfig(), []string{w.namespace}, "")
	_, stop := w.startFlow("v1")
	declared := map[string]string{"message": "hello", "type": "local", "region": "here", "zones": "a", "apps": "2"}
	w.declare(declared)
	w.answer("10.0.0.0/16")
	w.eventuallyReported("Succeeded", `"progress":100`)
	stop()
	const get, diff = "kubectl get configmap/site infrastructure/site -o yaml", " | kubectl-mr diff -n $NAMESPACE --render -f - --flow-version v1"
	if says := w.shell(get + diff); strings.Contains(says, "deleted") {
		t.Errorf("without a change it prints\n%s", says)
	}
	deleted := "ManagedResource " + w.namespace + "/site-app-2: is deleted, 1 to delete\n- ConfigMap " + w.namespace + "/site-app-2"
	for _, edit := range []string{`sed s/'apps: "2"'/'apps: "1"'/`, `sed -e s/'apps: "2"'/'apps: "1"'/ -e /uid:/d`} {
		says := w.shell(get + " | " + edit + diff + " || true")
		if !strings.Contains(says, deleted) {
			t.Errorf("after %s it prints\n%s", edit, says)
		}
	}
	declared["apps"] = "many"
	w.change(declared)
	if says := w.shell(get + diff); strings.Contains(says, "deleted") {
		t.Errorf("an invalid declaration deletes\n%s", says)
	}
}

// shell runs a command with kubectl and kubectl-mr in the namespace of the world.
func (w *world) shell(command string) string {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	kubeconfig := filepath.Join(w.TempDir(), "kubeconfig")
	kit.Must(w, os.WriteFile(kubeconfig, w.cp.Kubeconfig(), 0o600))
	command = strings.NewReplacer("kubectl get", "kubectl -n "+w.namespace+" get", "kubectl-mr render", "kubectl-mr render -n "+w.namespace, "$NAMESPACE", w.namespace).Replace(command)
	shell := exec.CommandContext(w.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(build[kubectlmr.Program](w.T))+":"+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	var out, problems bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &problems
	if err := shell.Run(); err != nil {
		w.Fatalf("%s: %v\n%s", command, err, problems.String())
	}
	return out.String()
}
