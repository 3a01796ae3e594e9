package authorizer

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

// machinesThatCameLater is the webhook's answer before Machines were defined.
var machinesThatCameLater string

// refuseWithoutMachines sends a request while the kind Machine does not exist, and defines it.
func (f *fixture) refuseWithoutMachines(t *testing.T) {
	t.Helper()
	agent := f.newAgent(t, byMachine, prefix+"m-own")
	machinesThatCameLater = word(agent.ask(call{verb: "get", base: core, resource: "nodes", name: "n-own"}))
	f.installMachines(t.Context(), t)
}

// TestMachineKindInstalledLater checks that the webhook has no opinion without the kind, and finds the kind when it is installed.
func TestMachineKindInstalledLater(t *testing.T) {
	f := newFixture(t)
	if machinesThatCameLater != "error" {
		t.Errorf("without the kind Machine the webhook answered %q", machinesThatCameLater)
	}
	agent := f.newAgent(t, byMachine, prefix+"m-own")
	kit.Eventually(t, "the Machine is found", func() string {
		if status := agent.ask(call{verb: "get", base: core, resource: "nodes", name: "n-own"}); !status.Allowed {
			return word(status) + " " + status.EvaluationError
		}
		return ""
	})
}
