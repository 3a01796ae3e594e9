package gardenlet

import (
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// defineAutoscalers defines the kinds of the Vertical Pod Autoscaler in the seed.
func (f *fixture) defineAutoscalers() {
	f.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(f, err)
	_, err = envtest.InstallCRDs(f.seedPlane.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", "crd", "autoscaling")}, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout,
	})
	kit.Must(f, err)
}
