package apiserver

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/kit"
)

func TestTables(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-tables"), "shown")
	output := mustKubectl(t, "", "get", "shoots", "-n", shoot.Namespace, "-o", "wide")
	header, row, _ := strings.Cut(output, "\n")
	if got, want := strings.Join(strings.Fields(header), " "), "NAME CLOUDPROFILE PROVIDER REGION SEED K8S VERSION HIBERNATION LAST OPERATION STATUS PURPOSE "+
		"GARDENER VERSION APISERVER CONTROL OBSERVABILITY NODES SYSTEM AGE"; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
	for _, cell := range []string{"shown", "Awake", "<none>", "<pending>", "<unknown>"} {
		if !strings.Contains(row, cell) {
			t.Errorf("the row %q lacks %q", row, cell)
		}
	}
	for _, resource := range served.Resources() {
		mustKubectl(t, "", "get", resource.Name+"."+resource.Version+"."+resource.Group, "-A")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	kit.EventuallyTrue(t, "kubectl explains workers", func() bool {
		output, err := kubectl(t, "", "explain", "shoot.spec.provider.workers", "--recursive")
		return err == nil && strings.Contains(output, "maxSurge") && strings.Contains(output, "machine")
	})
}
