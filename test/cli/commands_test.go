package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/pages"
)

// placeholders are what the pages write for what is the reader's own, and what that is here.
var placeholders = strings.NewReplacer(
	"NAME -n NAMESPACE", "webshop-app -n garden", "NAMESPACE", "garden", "<namespace>", "garden", "<node>", "node-0",
	"KIND/OBJECT -n OBJECTS", "deployment/storefront -n webshop", "KIND OBJECT -n OBJECTS", "deployment storefront -n webshop", "watch KIND", "watch deployments",
	"csr REQUEST", "csr request", "secret SECRET", "secret certificate", "service/shop", "service/storefront -n webshop",
	"servicemonitors,networkpolicies", "networkpolicies", // there is no Prometheus operator here
)

// TestCommandsOfPages runs what pages tell to type, in blocks and in sentences, on the web shop. It changes nothing that matters to it.
func TestCommandsOfPages(t *testing.T) {
	w := newWorld(t) // not parallel: it applies the definition of ManagedResources
	w.run("create", "shop", "-n", "default", "-f", "../../examples/webshop/flags").says(t, 0)
	t.Cleanup(func() {
		kit.Must(t, client.IgnoreNotFound(w.client.Delete(context.Background(), managedResource("default", "shop"))))
		w.run("wait", "shop", "-n", "default", "--for", "deleted").says(t, 0)
	})
	w.await(t, "default", "shop", state.Ready)
	w.prepare(t)
	shell := pages.Shell{Directory: repository(t), Kubeconfig: w.kubeconfig, Path: pages.Programs(t, "kubectl-mr") + ":" + filepath.Join(repository(t), "bin")}
	commands := map[string]string{}
	for page, test := range pages.RunBy {
		if test != t.Name() {
			continue
		}
		lines := pages.Inline(t, page)
		for _, block := range pages.Blocks(t, page) {
			lines = append(lines, block.Commands...)
		}
		for _, line := range lines {
			if pages.Why(line) == "" {
				commands[placeholders.Replace(line)] = page
			}
		}
	}
	for command, page := range commands {
		if output := shell.Run(t, []string{command}); strings.TrimSpace(output) == "" || strings.Contains(output, "No resources found") {
			t.Errorf("%s: %s says nothing: %q", page, command, output)
		}
	}
	if len(commands) < 30 {
		t.Errorf("found only %d commands", len(commands))
	}
}

// prepare makes what commands look at, and what a web shop does not have.
func (w *world) prepare(t *testing.T) {
	t.Helper()
	directory := t.TempDir()
	kit.NewAuthority(t).Issue(t, directory, time.Now().Add(time.Hour))
	certificate := &corev1.Secret{ObjectMeta: named("garden", "certificate"), Data: map[string][]byte{}, Type: corev1.SecretTypeTLS}
	for _, name := range []string{"tls.crt", "tls.key"} {
		content, err := os.ReadFile(filepath.Join(directory, name))
		kit.Must(t, err)
		certificate.Data[name] = content
	}
	labels := map[string]string{"app": "gardener-resource-manager"}
	for _, object := range []client.Object{
		certificate,
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-resource-manager", Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "example.org/resource-manager"}},
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "static", Labels: map[string]string{"token-invalidator.resources.gardener.cloud/consider": "true"},
		}},
	} {
		kit.Must(t, client.IgnoreAlreadyExists(w.client.Create(t.Context(), object)))
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}
	kit.Change(t, w.client, node, func() {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule})
	})
}
