package extension

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
	"github.com/trellis-k8s/trellis/test/pages"
)

const guide = "docs/writing-extensions.md"

// resourceManagers runs the resource-managers of the seed and of the Shoot, which are the same cluster.
func (w *world) resourceManagers() {
	w.Helper()
	for _, class := range []string{bundles.ClassSeed, resourcesv1alpha1.DefaultClass} {
		parts, err := inprocess.ResourceManager{Scheme: w.scheme, Source: w.cp.Config(), Target: w.cp.Config(), Class: class, Identity: "of-" + class}.New(w.Context())
		kit.Must(w, err)
		kit.Run(w, parts.Manager)
	}
}

// TestWritingExtensions follows docs/writing-extensions.md. The extension runs with the permissions of its chart.
func TestWritingExtensions(t *testing.T) {
	w := newWorld(t)
	w.codeOfTheGuide()
	w.resourceManagers()
	t.Cleanup(func() {
		if t.Failed() {
			w.describe()
		}
	})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, os.WriteFile(kubeconfig, w.cp.Kubeconfig(), 0o600))
	page := pages.Open(t, guide, pages.Shell{Directory: w.root, Kubeconfig: kubeconfig, Path: filepath.Join(w.root, "bin")})

	page.Next("Try it")
	w.startGreeting()
	has(t, page.Next("Try it"), "hello garden-dev/blue", "extension-greeting-shoot", "extension-greeting-seed")
	has(t, page.Next("Try it"), `["ERR_CONFIGURATION_PROBLEM"]`, `unknown field "txet"`)
	has(t, page.Next("Try it"), "good morning", "extension-greeting")
	if left := page.Next("Try it"); strings.Contains(left, "NAME") {
		t.Errorf("after the deletion, the output is %s", left)
	}
	page.Next("Register it")
	w.registration()
	page.End()
}

// describe logs the status of the extension's objects and ManagedResources, for failures.
func (w *world) describe() {
	w.Helper()
	var extensions extensionsv1alpha1.ExtensionList
	kit.Must(w, w.client.List(context.Background(), &extensions))
	for _, one := range extensions.Items {
		w.Logf("Extension %s: %+v, %+v", client.ObjectKeyFromObject(&one), one.Status.LastOperation, one.Status.LastError)
	}
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(w, w.client.List(context.Background(), &list))
	for _, one := range list.Items {
		w.Logf("ManagedResource %s: class %v, %+v", client.ObjectKeyFromObject(&one), one.Spec.Class, one.Status.Conditions)
	}
}

func has(t *testing.T, output string, wanted ...string) {
	t.Helper()
	for _, text := range wanted {
		if !strings.Contains(output, text) {
			t.Errorf("the text %q is missing in %s", text, output)
		}
	}
}

var goBlock = regexp.MustCompile("(?s)\n```go\n(.*?)```")

// codeOfTheGuide checks that the code on the page equals the code of the example.
func (w *world) codeOfTheGuide() {
	w.Helper()
	page, err := os.ReadFile(filepath.Join(w.root, guide))
	kit.Must(w, err)
	var code []byte
	for _, file := range []string{"greeting.go", "add.go"} {
		text, err := os.ReadFile(filepath.Join(w.root, "examples", "extension", file))
		kit.Must(w, err)
		code = append(code, text...)
	}
	found := goBlock.FindAllSubmatch(page, -1)
	if len(found) < 3 {
		w.Errorf("the page has only %d code blocks", len(found))
	}
	for _, block := range found {
		if !bytes.Contains(code, block[1]) {
			w.Errorf("the example does not contain %s", block[1])
		}
	}
}

// startGreeting runs the program with the command of the page and the permissions of the chart.
func (w *world) startGreeting() {
	w.Helper()
	var commands []string
	for _, block := range pages.Blocks(w, guide) {
		for _, command := range block.Commands {
			if strings.HasPrefix(command, "bin/greeting ") {
				commands = append(commands, command)
			}
		}
	}
	if len(commands) != 1 {
		w.Fatalf("the page starts the extension with %q, want one command", commands)
	}
	arguments := strings.Fields(commands[0])
	command := exec.CommandContext(w.Context(), filepath.Join(w.root, arguments[0]), arguments[1:]...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.rightsOfTheChart())
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	kit.Must(w, command.Start())
	w.Cleanup(func() {
		_ = command.Wait() // the context of the test has ended
		if strings.Contains(output.String(), "forbidden") {
			w.Errorf("the chart lacks permissions: %s", output.String())
		}
		if w.Failed() {
			w.Logf("output of the extension: %s", output.String())
		}
	})
}

// rightsOfTheChart applies the RBAC objects of the chart, and returns the path of a kubeconfig for its ServiceAccount.
func (w *world) rightsOfTheChart() string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, "examples", "extension", "chart", "templates", "rbac.yaml"))
	kit.Must(w, err)
	rendered := strings.NewReplacer(`"extensions.gardener.cloud:{{ .Chart.Name }}"`, "extensions.gardener.cloud:extension-greeting",
		"{{ .Chart.Name }}", "extension-greeting", "{{ .Release.Name }}", "extension-greeting", "{{ .Release.Namespace }}", "extension-greeting").Replace(string(text))
	apply := exec.CommandContext(w.Context(), filepath.Join(w.root, "bin", "kubectl"), "apply", "-f", "-")
	admin := filepath.Join(w.TempDir(), "admin")
	kit.Must(w, os.WriteFile(admin, w.cp.Kubeconfig(), 0o600))
	apply.Env, apply.Stdin = append(os.Environ(), "KUBECONFIG="+admin), strings.NewReader(rendered)
	if output, err := apply.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s\n%s", err, output, rendered)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "extension-greeting", Name: "extension-greeting"}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	kit.Must(w, w.client.SubResource("token").Create(w.Context(), account, request))
	config, err := clientcmd.Load(w.cp.Kubeconfig())
	kit.Must(w, err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	file := filepath.Join(w.TempDir(), "greeting")
	kit.Must(w, clientcmd.WriteToFile(*config, file))
	return file
}

// registration checks the file that the page's commands have written: objects of the garden, with the chart.
func (w *world) registration() {
	w.Helper()
	file := filepath.Join(w.root, "bin", "greeting-registration.yaml")
	text, err := os.ReadFile(file)
	kit.Must(w, err)
	kit.Must(w, os.Remove(file))
	first, second, _ := bytes.Cut(text, []byte("\n---\n"))
	deployment, registration := &gardencorev1.ControllerDeployment{}, &corev1beta1.ControllerRegistration{}
	kit.Must(w, yaml.UnmarshalStrict(first, deployment))
	kit.Must(w, yaml.UnmarshalStrict(second, registration))
	if deployment.Helm == nil || !bytes.HasPrefix(deployment.Helm.RawChart, []byte{0x1f, 0x8b}) {
		w.Errorf("the chart is not an archive: %+v", deployment.Helm)
	}
	if !slices.ContainsFunc(registration.Spec.Resources, func(one corev1beta1.ControllerResource) bool {
		return one.Kind == "Extension" && one.Type == "greeting"
	}) ||
		registration.Spec.Deployment.DeploymentRefs[0].Name != deployment.Name {
		w.Errorf("the registration is %+v", registration.Spec)
	}
}
