package kit

import (
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// Define creates CustomResourceDefinitions and waits until their kinds are served.
func Define(tb testing.TB, config *rest.Config, definitions ...*apiextensionsv1.CustomResourceDefinition) {
	tb.Helper()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: WaitTimeout})
	Must(tb, err)
}

// DefineManagedResources creates the CustomResourceDefinition of ManagedResources in config/crd, and waits until the kind
// is served.
func DefineManagedResources(tb testing.TB, config *rest.Config) {
	tb.Helper()
	root, err := controlplane.RepositoryRoot()
	Must(tb, err)
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", "crd")}, ErrorIfPathMissing: true, MaxTime: WaitTimeout,
	})
	Must(tb, err)
}
