package authorizer

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

// machinesThatCameLater is what the webhook said before Machines were defined.
var machinesThatCameLater string

// refuseWithoutMachines asks while there is no kind Machine, and defines it.
func (f *fixture) refuseWithoutMachines(t *testing.T) {
	t.Helper()
	agent := f.newAgent(t, byMachine, prefix+"m-own")
	machinesThatCameLater = word(agent.ask(call{verb: "get", base: core, resource: "nodes", name: "n-own"}))
	f.installMachines(t.Context(), t)
}

// TestMachineKindInstalledLater: without the kind there is no opinion, and when it is there it is found.
func TestMachineKindInstalledLater(t *testing.T) {
	f := newFixture(t)
	if machinesThatCameLater != "error" {
		t.Errorf("without the kind Machine the webhook said %q", machinesThatCameLater)
	}
	agent := f.newAgent(t, byMachine, prefix+"m-own")
	kit.Eventually(t, "the Machine is found", func() string {
		if status := agent.ask(call{verb: "get", base: core, resource: "nodes", name: "n-own"}); !status.Allowed {
			return word(status) + " " + status.EvaluationError
		}
		return ""
	})
}
