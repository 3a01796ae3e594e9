package app

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/program/programtest"
)

var tested = programtest.Program{Name: "controller-manager", New: newCommand, Version: version}

func TestCommandLine(t *testing.T) {
	const header = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n"
	tested.Refuses(t, map[string]programtest.Case{
		"a file with mistakes": {File: header + "controllers: {projects: {}}\nlogLevel: loud\n", Want: []string{`unknown field "controllers.projects"`, "logLevel"}},
		"no kubeconfig":        {File: header + "gardenClientConnection: {kubeconfig: /does/not/exist}\n", Want: []string{"garden: read the kubeconfig"}},
	})
}

func TestHelpAndVersion(t *testing.T) { tested.Explains(t) }
