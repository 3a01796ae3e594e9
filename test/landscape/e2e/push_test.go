package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/test/landscape"
)

// TestPush checks that a changed program is built, packed into an image, imported and rolled out, and that a second
// change does not import unchanged layers again.
func TestPush(t *testing.T) {
	needsLandscape(t)
	c := on(t, base)
	c.create(c.deployment("web", 2, c.server()), service("web", corev1.ServiceTypeClusterIP))
	before := c.available("web")
	const source = "test/landscape/programs/probe/main.go"
	original := c.image("probe")
	t.Cleanup(func() { c.push("probe") }) // for other tests

	overlay(t, source, "hello from %s", "changed answer of %s")
	output := c.push("probe")
	changed := c.image("probe")
	if changed == original || !strings.Contains(output, "Deployment "+c.namespace+"/web runs the new image") {
		t.Errorf("the image is %s, previously %s; push prints:\n%s", changed, original, output)
	}
	after := c.available("web")
	for _, pod := range after {
		if strings.Contains(strings.Join(before, " "), pod) {
			t.Errorf("the Pod %s was not replaced", pod)
		}
		if image := c.kubectl("get", "pod", pod, "-o", "jsonpath={.spec.containers[0].image}"); image != changed {
			t.Errorf("the Pod %s runs %s, want %s", pod, image, changed)
		}
		if answer, err := c.probe(pod, "get", "http://"+c.podIP(pod)+":8080"); err != nil || !strings.HasPrefix(answer, "changed answer of "+pod) {
			t.Errorf("the Pod %s responds %q, %v", pod, answer, err)
		}
	}
	if output := c.push("probe"); strings.Contains(output, "imported") {
		t.Errorf("an existing image is imported again:\n%s", output)
	}
	if now := c.available("web"); strings.Join(now, " ") != strings.Join(after, " ") {
		t.Errorf("a push without a change replaces the Pods: %v, previously %v", now, after)
	}
}

// TestPushLayers checks that only the changed layers of an image are imported.
func TestPushLayers(t *testing.T) {
	needsLandscape(t)
	c := on(t, base)
	makeMachineImages(t) // creates the layer with Debian's files
	t.Cleanup(func() { c.push("node-agents") })
	c.push("node-agents")
	overlay(t, "test/landscape/programs/node-agents/main.go", "name of this node", "the name of this node")
	output := c.push("node-agents")
	// The layer with the program, the configuration and the manifest are new. The layer with Debian's files is not.
	if want := "3 blobs sent, 1 already there"; !strings.Contains(output, want) {
		t.Errorf("push prints\n%s\nwant %q", output, want)
	}
}

// overlay makes the Go tool build the project with another text in a file, until the test ends.
func overlay(t *testing.T, file, text, with string) {
	t.Helper()
	path := filepath.Join(base.Root, file)
	content, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Contains(content, []byte(text)) {
		t.Fatalf("%s does not contain %q", file, text)
	}
	directory := t.TempDir()
	changed := filepath.Join(directory, "changed.go")
	must(t, os.WriteFile(changed, bytes.ReplaceAll(content, []byte(text), []byte(with)), 0o600))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(directory, "overlay.json"), list, 0o600))
	t.Setenv("GOFLAGS", strings.TrimSpace(fmt.Sprintf("%s -overlay=%s/overlay.json", os.Getenv("GOFLAGS"), directory)))
}

// push runs the same code as `make landscape-push`, and returns its output.
func (c *cluster) push(name string) string {
	c.t.Helper()
	var out bytes.Buffer
	l, err := landscape.New(landscape.Options{Root: c.landscape.Root, Directory: c.landscape.Directory, Out: &out})
	must(c.t, err)
	reference, err := l.Push(c.ctx, name)
	must(c.t, err)
	must(c.t, l.RollOut(c.ctx, name, reference))
	c.t.Logf("push %s:\n%s", name, out.String())
	return out.String()
}
