package e2e

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// TestGarden installs the operator with its chart and a Garden on the base cluster, as an operator of a fleet would: the control plane of
// the virtual garden and the programs of the garden run in real containers.
func TestGarden(t *testing.T) {
	needsLandscape(t)
	c := on(t, base)
	f, err := fleet.New(base, t.Logf)
	must(t, err)
	must(t, f.UpGarden(c.ctx))
}
