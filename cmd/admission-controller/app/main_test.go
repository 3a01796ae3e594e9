package app

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/program/programtest"
)

var tested = programtest.Program{Name: "admission-controller", New: newCommand, Version: version}

func TestCommandLine(t *testing.T) {
	const header = "apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1\nkind: AdmissionControllerConfiguration\n"
	tested.Refuses(t, map[string]programtest.Case{
		"a file with mistakes": {File: header + "servers: {}\nlogLevel: loud\n", Want: []string{`unknown field "servers"`, "logLevel"}},
		"no kubeconfig":        {File: header + "gardenClientConnection: {kubeconfig: /does/not/exist}\n", Want: []string{"garden: read the kubeconfig"}},
	})
}

func TestHelpAndVersion(t *testing.T) { tested.Explains(t) }
