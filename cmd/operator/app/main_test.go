package app

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/program/programtest"
)

var tested = programtest.Program{Name: "operator", New: newCommand, Version: version}

func TestCommandLine(t *testing.T) {
	const header = "apiVersion: operator.config.gardener.cloud/v1alpha1\nkind: OperatorConfiguration\n"
	tested.Refuses(t, map[string]programtest.Case{
		"a file with mistakes": {File: header + "controllers: {gardens: {}}\nlogLevel: loud\n", Want: []string{`unknown field "controllers.gardens"`, "logLevel"}},
		"no kubeconfig":        {File: header + "runtimeClientConnection: {kubeconfig: /does/not/exist}\n", Want: []string{"runtime cluster: read the kubeconfig"}},
	})
}

func TestHelpAndVersion(t *testing.T) { tested.Explains(t) }
