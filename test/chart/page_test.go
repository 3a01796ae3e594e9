package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmcmd "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/pages"
)

// asHelm makes this process act as the helm command, for shells that tests run.
func asHelm() int {
	kube.ManagedFieldsManager = "helm"
	command, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], helmcmd.SetupLogging)
	if err != nil || command.Execute() != nil {
		return 1
	}
	return 0
}

// TestInstallationPage runs the commands of docs/installation.md with Helm's own command line and kubectl. One
// cluster is both the source and the target.
func TestInstallationPage(t *testing.T) {
	needsTime(t)
	h := newHelm(t)
	h.namespace = "garden"
	shell := h.shell(t)
	page := pages.Open(t, "docs/installation.md", shell)
	shell.Run(t, []string{"kubectl delete customresourcedefinition managedresources.resources.gardener.cloud --ignore-not-found"}) // left by other tests

	page.Next("Installation")
	h.wantImage("example.org/resource-manager:v1.2.3")

	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--foo--bar"}})
	page.Next("Two modes")
	page.Next("Two modes")
	secret := &corev1.Secret{}
	kit.Must(t, h.get(secret, "shoot--foo--bar", "shoot-access-gardener-resource-manager"))
	if token := string(secret.Data["token"]); strings.Count(token, ".") != 2 {
		t.Errorf("the token is %q", token)
	}
	shell.Run(t, []string{"helm uninstall resource-manager --namespace shoot--foo--bar", "helm uninstall rights --namespace kube-system"})

	h.manage("held", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: garden}\n") // no running process would add a finalizer
	page.Next("Upgrade, roll back, uninstall")
	if definition := h.anyDefinition(); definition {
		t.Error("the definition of ManagedResources still exists")
	}

	before := h.deployUpstream()
	page.Next("Upgrade, roll back, uninstall")
	after := &appsv1.Deployment{}
	kit.Must(t, h.get(after, "", manager))
	if after.UID != before.UID {
		t.Error("the Deployment was created again")
	}
	h.eventuallyAvailable(manager)

	shell.Run(t, []string{"helm uninstall resource-manager --namespace garden", "kubectl delete namespace garden"})
	page.Next("Plain YAML")
	h.eventuallyAvailable(manager)
	page.End()

	rendered := 0
	for _, command := range pages.Inline(t, "docs/installation.md") {
		if command = strings.ReplaceAll(command, "NAME", "elsewhere"); pages.Why(command) == "" && strings.Contains(command, "helm template") {
			rendered++
			// A released Helm supports a newer Kubernetes than its library.
			if output := shell.Run(t, []string{command + " --kube-version 1.30"}); !strings.Contains(output, "namespace: elsewhere") {
				t.Errorf("%s: %s", command, output)
			}
		}
	}
	if rendered == 0 {
		t.Error("nothing was rendered")
	}
	shell.Run(t, []string{"kubectl delete -k config/seed"})
}

// shell returns a shell in a directory with the chart, config/ and the values of the page, and with a second
// context for the same cluster. Webhooks are not registered, because no server listens at their address.
func (h *helm) shell(t *testing.T) pages.Shell {
	t.Helper()
	directory := t.TempDir()
	for _, name := range []string{"charts", "config"} {
		kit.Must(t, os.Symlink(filepath.Join(root(t), name), filepath.Join(directory, name)))
	}
	content, err := os.ReadFile(filepath.Join(root(t), "docs", "installation.md"))
	kit.Must(t, err)
	values := string(valuesBlock.FindSubmatch(content)[1]) + "webhooks: {register: false}\n"
	kit.Must(t, os.WriteFile(filepath.Join(directory, "values.yaml"), []byte(values), 0o600))
	kubeconfig := filepath.Join(directory, "kubeconfig")
	kit.Must(t, os.WriteFile(kubeconfig, shared.Get(t).Kubeconfig(), 0o600))
	shell := pages.Shell{Directory: directory, Kubeconfig: kubeconfig, Path: pages.Programs(t, "helm") + ":" + filepath.Join(root(t), "bin")}
	shell.Run(t, []string{
		"kubectl config set-context shoot --cluster $(kubectl config view -o jsonpath='{.contexts[0].context.cluster}') " +
			"--user $(kubectl config view -o jsonpath='{.contexts[0].context.user}')",
	})
	return shell
}

func (h *helm) wantImage(image string) {
	h.Helper()
	deployment := &appsv1.Deployment{}
	kit.Must(h, h.get(deployment, "", manager))
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != image {
		h.Errorf("the image is %s", got)
	}
	h.eventuallyAvailable(manager)
}

// anyDefinition reports whether ManagedResources are defined.
func (h *helm) anyDefinition() bool {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return h.client.Get(h.Context(), client.ObjectKey{Name: "managedresources.resources.gardener.cloud"}, definition) == nil
}
