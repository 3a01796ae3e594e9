package apiserver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

var shared = garden.Shared{Options: garden.Options{ControlPlane: controlplane.Options{
	ControllerManager: true,
	// It counts the garden's kinds in quotas only after it has discovered them.
	ControllerManagerArgs: []string{"--resource-quota-sync-period=5s"},
}}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// newClient returns a client with administrator permissions for the garden's kinds and those of Kubernetes.
func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	return newClientFor(t, shared.Get(t))
}

// startGarden starts a garden for one test.
func startGarden(t *testing.T) *garden.Garden {
	t.Helper()
	return startGardenWith(t, garden.Options{})
}

// startGardenWith is like startGarden with options. It sets the path of the API server's program.
func startGardenWith(t *testing.T, options garden.Options) *garden.Garden {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	var err error
	options.APIServer, err = garden.Binary()
	kit.Must(t, err)
	g, err := garden.Start(t.Context(), options)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, g.Stop()) })
	return g
}

func newClientFor(t *testing.T, g *garden.Garden) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, served.AddToScheme(scheme))
	c, err := client.NewWithWatch(g.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	return c
}

// kubectl runs kubectl as an administrator and returns its output. Input is its standard input.
func kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "kubectl"),
		append([]string{"--kubeconfig", filepath.Join(shared.Get(t).Dir(), "kubeconfig"), "--cache-dir", t.TempDir()}, args...)...)
	command.Stdin = strings.NewReader(input)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err = command.Run()
	return output.String(), err
}

// mustKubectl is like kubectl, but fails the test on errors.
func mustKubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := kubectl(t, input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}
