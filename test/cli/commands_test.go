package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/pages"
)

// placeholders are the placeholders in the pages and their values in this test.
var placeholders = strings.NewReplacer(
	"NAME -n NAMESPACE", "webshop-app -n garden", "NAMESPACE", "garden", "<namespace>", "garden", "<node>", "node-0",
	"KIND/OBJECT -n OBJECTS", "deployment/storefront -n webshop", "KIND OBJECT -n OBJECTS", "deployment storefront -n webshop", "watch KIND", "watch deployments",
	"csr REQUEST", "csr request", "secret SECRET", "secret certificate", "service/shop", "service/storefront -n webshop",
	"servicemonitors,networkpolicies", "networkpolicies", // the test has no Prometheus operator
)

// TestCommandsOfPages runs the commands of the pages, in blocks and in sentences, on the web shop. They change nothing that matters to it.
func TestCommandsOfPages(t *testing.T) {
	w := newWorld(t) // not parallel: it applies the definition of ManagedResources
	w.run("create", "shop", "-n", "default", "-f", "../../examples/webshop/flags").says(t, 0)
	t.Cleanup(func() {
		w.forget(t, "default", "shop", "hello") // hello is that of README.md
		w.shellIn(repository(t), "kubectl delete secret hello")
	})
	w.await(t, "default", "shop", state.Ready)
	w.prepare(t)
	shell := pages.Shell{Directory: repository(t), Kubeconfig: w.kubeconfig, Path: pages.Programs(t, "kubectl-mr") + ":" + filepath.Join(repository(t), "bin")}
	commands := map[string]bool{}
	for page, test := range pages.RunBy {
		if test != t.Name() {
			continue
		}
		lines := pages.Inline(t, page)
		for _, block := range pages.Blocks(t, page) {
			lines = append(lines, block.Commands...)
		}
		for _, line := range lines {
			command := placeholders.Replace(line)
			if pages.Why(line) != "" || commands[command] {
				continue
			}
			commands[command] = true
			output := shell.Run(t, []string{command})
			nothing := strings.Contains(output, "No resources found") && !strings.HasPrefix(command, "kubectl get events")
			if strings.TrimSpace(output) == "" || nothing {
				t.Errorf("%s: %s printed nothing: %q", page, command, output)
			}
		}
	}
	if len(commands) < 30 {
		t.Errorf("found only %d commands", len(commands))
	}
}

// prepare creates the objects that the commands read and that a web shop does not have.
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "somebody"}}, key)
	kit.Must(t, err)
	kit.Define(t, w.controlPlane.Config(), kindOf("machine.sapcloud.io", "Machine"))
	w.ofTool(t, "machine.sapcloud.io", "Machine", "garden", "machine", "", "{}")
	labels := map[string]string{"app": "gardener-resource-manager"}
	for _, object := range []client.Object{
		certificate,
		&coordinationv1.Lease{ObjectMeta: named("garden", "gardener-resource-manager")},
		&networkingv1.NetworkPolicy{ObjectMeta: named("garden", "gardener-resource-manager")},
		&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "request"}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
			SignerName: "example.org/signer", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
		}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "without-webhooks"}},
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-resource-manager", Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "example.org/resource-manager"}},
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "static", Labels: map[string]string{"token-invalidator.resources.gardener.cloud/consider": "true"},
		}},
	} {
		kit.Must(t, client.IgnoreAlreadyExists(w.client.Create(t.Context(), object)))
		t.Cleanup(func() { kit.Must(t, client.IgnoreNotFound(w.client.Delete(context.Background(), object))) })
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}
	kit.Change(t, w.client, node, func() {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule})
	})
}

// TestWebshopPage runs the commands of examples/webshop/README.md with other names, because the web shop is already installed.
func TestWebshopPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	directory := t.TempDir()
	renamed := strings.NewReplacer("webshop", "market", "shop.example.org", "market.example.org", "coupon", "voucher", "Coupon", "Voucher",
		"-n garden", "-n bazaar", "namespace garden", "namespace bazaar", "namespace: garden", "namespace: bazaar")
	for _, folder := range []string{"base", "app"} {
		files, err := filepath.Glob(filepath.Join(repository(t), "examples", "webshop", folder, "*"))
		kit.Must(t, err)
		into := filepath.Join(directory, "examples", "market", folder)
		kit.Must(t, os.MkdirAll(into, 0o700))
		for _, file := range files {
			content, err := os.ReadFile(file)
			kit.Must(t, err)
			kit.Must(t, os.WriteFile(filepath.Join(into, filepath.Base(file)), []byte(renamed.Replace(string(content))), 0o600))
		}
	}
	shell := pages.Shell{Directory: directory, Kubeconfig: w.kubeconfig, Path: pages.Programs(t, "brotli") + ":" + filepath.Join(repository(t), "bin")}
	for _, block := range pages.Blocks(t, "examples/webshop/README.md") {
		says(t, shell.Run(t, strings.Split(renamed.Replace(strings.Join(block.Commands, "\n")), "\n")), "market-base")
	}
}
