// Package trouble tests the resource-manager, the real program on a real control plane, under problems that last
// longer than one request: lagging watches, two leaders, failing API servers and etcd, revoked rights, little
// memory. Package faults tests failures of single requests. See CONTRIBUTING.md.
package trouble

import (
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var long = flag.Bool("trouble.long", false, "also run the tests that take minutes")

var (
	shared  = controlplane.Shared{}
	install sync.Once
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// takesLong skips a test unless the flag for long tests is set.
func takesLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("takes minutes: set -trouble.long, or run `make trouble`")
	}
}

func newScheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	kit.Must(tb, clientgoscheme.AddToScheme(scheme))
	kit.Must(tb, resourcesv1alpha1.AddToScheme(scheme))
	return scheme
}

// newClient returns an administrator's client of a control plane with the ManagedResource definition.
func newClient(tb testing.TB, cp *controlplane.ControlPlane) client.Client {
	tb.Helper()
	define := func() {
		_, err := envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{Paths: []string{"../../config/crd"}, ErrorIfPathMissing: true})
		kit.Must(tb, err)
	}
	if cp == shared.Get(tb) {
		install.Do(define)
	} else {
		define()
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: newScheme(tb)})
	kit.Must(tb, err)
	return c
}
