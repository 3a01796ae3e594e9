// Package cli tests kubectl mr against a real control plane with the resource-manager.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/top"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
	"github.com/trellis-k8s/trellis/test/pages"
)

var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 3}}

// auditLog is the audit log of the shared control plane.
var auditLog = filepath.Join(os.TempDir(), fmt.Sprintf("trellis-cli-audit-%d.log", os.Getpid()))

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // like the program
	if pages.Program() != "" {
		os.Exit(asProgram())
	}
	shared.Options.AuditLog = auditLog
	code := shared.Run(m)
	_ = os.Remove(auditLog)
	os.Exit(code)
}

// asProgram runs kubectl mr, or brotli --stdout, for shells that tests start.
func asProgram() int {
	if pages.Program() == "brotli" {
		compressed := brotli.NewWriter(os.Stdout)
		_, err := io.Copy(compressed, os.Stdin)
		if err := errors.Join(err, compressed.Close()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	c := kubectl.NewConsole(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, "v0.0.0-test")
	command := cli.NewCommand(c, "kubectl mr")
	command.SetArgs(os.Args[1:])
	err := c.Explain(command.ExecuteContext(context.Background()))
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	return console.ExitCode(err)
}

// world is the state that all tests share: the web shop of the demo, and a sale that does not start.
type world struct {
	controlPlane *controlplane.ControlPlane
	kubeconfig   string
	client       client.Client
	// withoutKind is the outcome of get before the kind ManagedResource was defined.
	withoutKind outcome
	// topWithoutKind is the error of top before the kind was defined.
	topWithoutKind error
}

var theWorld = struct {
	sync.Once
	*world
	err error
}{}

// newWorld returns the world. The first call creates it.
func newWorld(t *testing.T) *world {
	t.Helper()
	cp := shared.Get(t)
	theWorld.Do(func() { theWorld.world, theWorld.err = makeWorld(t, cp) })
	kit.Must(t, theWorld.err)
	return theWorld.world
}

func makeWorld(t *testing.T, cp *controlplane.ControlPlane) (*world, error) {
	t.Helper()
	w := &world{controlPlane: cp, kubeconfig: filepath.Join(cp.Dir(), "kubeconfig")}
	c, err := client.New(cp.Config(), client.Options{Scheme: console.Scheme()})
	if err != nil {
		return nil, err
	}
	w.client = c
	w.withoutKind = w.run("get", "-A")
	w.topWithoutKind = w.startTop(context.Background(), t, top.Options{}, nil).ends()
	_, err = envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{Paths: []string{"../../config/crd"}, ErrorIfPathMissing: true})
	if err != nil {
		return nil, err
	}
	if err := w.startManager(); err != nil {
		return nil, err
	}
	garden := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
	if err := c.Create(context.Background(), garden); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"create", "webshop-base", "-n", "garden", "-f", "../../examples/webshop/base", "--plain", "--wait"},
		{"create", "webshop-app", "-n", "garden", "-f", "../../examples/webshop/app", "--wait"},
		{"create", "webshop-sale", "-n", "garden", "-f", "../../examples/webshop/sale"},
	} {
		if out := w.run(args...); out.code != 0 {
			return nil, fmt.Errorf("%v: %s%s", args, out.out, out.err)
		}
	}
	return w, nil
}

// startManager starts a resource-manager that runs as long as the control plane.
func (w *world) startManager() error {
	binary, err := kit.Binary()
	if err != nil {
		return err
	}
	health, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	metrics, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	config := filepath.Join(w.controlPlane.Dir(), "resource-manager.yaml")
	err = os.WriteFile(config, fmt.Appendf(nil, `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: %q, qps: -1}
leaderElection: {leaderElect: false}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
`, w.kubeconfig, health, metrics), 0o600)
	if err != nil {
		return err
	}
	process, err := w.controlPlane.StartProcess("resource-manager", binary, "--config", config)
	if err != nil {
		return err
	}
	return awaitReady(process, fmt.Sprintf("http://127.0.0.1:%d/readyz", health))
}

func awaitReady(process *controlplane.Process, url string) error {
	deadline := time.Now().Add(kit.WaitTimeout)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for range ticker.C {
		if err := process.Err(); err != nil {
			return err
		}
		response, err := http.Get(url)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return errors.New("the resource-manager does not become ready")
		}
	}
	return nil
}

// outcome is the output of a command, and its exit code.
type outcome struct {
	out, err string
	code     int
}

// call is a command to run.
type call struct {
	args  []string
	in    string
	width int
	wrap  func(*rest.Config) *rest.Config
	ctx   context.Context
}

// run runs a command like the program, with the kubeconfig of the control plane unless another one is named.
func (w *world) run(args ...string) outcome { return w.runCall(call{args: args}) }

func (w *world) runCall(do call) outcome {
	if !strings.Contains(strings.Join(do.args, " "), "--kubeconfig") {
		do.args = append([]string{"--kubeconfig", w.kubeconfig, "--cache-dir", filepath.Join(w.controlPlane.Dir(), "discovery")}, do.args...)
	}
	return execute(do)
}

func execute(do call) outcome {
	var out, errOut bytes.Buffer
	c := kubectl.NewConsole(genericiooptions.IOStreams{In: strings.NewReader(do.in), Out: &out, ErrOut: &errOut}, "v0.0.0-test")
	c.Screen.Width, c.Wrap = do.width, do.wrap
	if do.ctx == nil {
		do.ctx = context.Background()
	}
	command := cli.NewCommand(c, "kubectl mr")
	command.SetArgs(do.args)
	err := c.Explain(command.ExecuteContext(do.ctx))
	if err != nil && err.Error() != "" {
		fmt.Fprintln(&errOut, "error:", err)
	}
	return outcome{out.String(), errOut.String(), console.ExitCode(err)}
}

// says checks the exit code, and that all texts are in the standard output, or in the standard error if they begin with "!" that no
// space follows.
func (o outcome) says(t *testing.T, code int, texts ...string) {
	t.Helper()
	if objection := o.lacks(code, texts...); objection != "" {
		t.Error(objection)
	}
}

// lacks describes the difference of an outcome from the expected one. It is empty if there is no difference.
func (o outcome) lacks(code int, texts ...string) string {
	if o.code != code {
		return fmt.Sprintf("exit code %d, want %d\n%s%s", o.code, code, o.out, o.err)
	}
	for _, text := range texts {
		where, wanted := o.out, text
		if rest, isError := strings.CutPrefix(text, "!"); isError && !strings.HasPrefix(rest, " ") {
			where, wanted = o.err, rest
		}
		if !strings.Contains(squeeze(where), squeeze(wanted)) {
			return fmt.Sprintf("%q is not in the output:\n%s%s", wanted, o.out, o.err)
		}
	}
	return ""
}

// squeeze replaces several spaces with one.
func squeeze(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// namespace creates a namespace for the test.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	return kit.NewNamespace(t, w.client, "cli", nil)
}

// deliver delivers manifests as a ManagedResource, and waits until it is in a state. $NS is replaced by the namespace.
func (w *world) deliver(t *testing.T, namespace, name string, wanted state.Word, manifests string) {
	t.Helper()
	out := w.runCall(call{
		args: []string{"create", name, "-n", namespace, "-f", "-"}, in: strings.ReplaceAll(manifests, "$NS", namespace),
	})
	out.says(t, 0, "managedresource "+namespace+"/"+name)
	w.await(t, namespace, name, wanted)
}

// deliverSuspended delivers manifests as a ManagedResource, and suspends it once they are applied.
func (w *world) deliverSuspended(t *testing.T, namespace, name, manifests string) {
	t.Helper()
	w.deliver(t, namespace, name, state.Ready, manifests)
	w.run("suspend", name, "-n", namespace).says(t, 0)
	w.await(t, namespace, name, state.Suspended)
}

// forget deletes ManagedResources, and waits until they no longer exist.
func (w *world) forget(t *testing.T, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		kit.Must(t, client.IgnoreNotFound(w.client.Delete(context.Background(), managedResource(namespace, name))))
		w.run("wait", name, "-n", namespace, "--for", "deleted").says(t, 0)
	}
}

// await waits until a ManagedResource is in a state.
func (w *world) await(t *testing.T, namespace, name string, wanted state.Word) {
	t.Helper()
	kit.Eventually(t, name+" is "+string(wanted), func() string {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, mr); err != nil {
			return err.Error()
		}
		if is := state.Of(mr); is.Word != wanted {
			return fmt.Sprintf("%+v", is)
		}
		applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
		if wanted == state.Suspended && applied.Reason != resourcesv1alpha1.ReasonManagedResourceIgnored {
			return "the resource-manager has not observed the suspension yet"
		}
		return ""
	})
}

// eventually runs a command until its outcome is the expected one.
func (w *world) eventually(t *testing.T, code int, texts []string, args ...string) outcome {
	t.Helper()
	var last outcome
	kit.Eventually(t, strings.Join(args, " "), func() string {
		last = w.run(args...)
		return last.lacks(code, texts...)
	})
	return last
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// edit changes the colour in a ConfigMap like a user of kubectl edit.
func (w *world) edit(t *testing.T, namespace, name, colour string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"colour":%q}}`, colour))
	kit.Must(t, w.client.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: named(namespace, name)}, patch, client.FieldOwner("kubectl-edit")))
}

// colour returns the colour in a ConfigMap. It is empty if there is none.
func (w *world) colour(t *testing.T, namespace, name string) string {
	t.Helper()
	configMap := &corev1.ConfigMap{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, configMap); err != nil {
		return ""
	}
	return configMap.Data["colour"]
}
