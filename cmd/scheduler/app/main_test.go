package app

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/program/programtest"
)

var tested = programtest.Program{Name: "scheduler", New: newCommand, Version: version}

func TestCommandLine(t *testing.T) {
	const header = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"
	tested.Refuses(t, map[string]programtest.Case{
		"a file with mistakes": {File: header + "schedulers: {project: {}}\nlogLevel: loud\n", Want: []string{`unknown field "schedulers.project"`, "logLevel"}},
		"no kubeconfig":        {File: header + "clientConnection: {kubeconfig: /does/not/exist}\n", Want: []string{"garden: read the kubeconfig"}},
	})
}

func TestHelpAndVersion(t *testing.T) { tested.Explains(t) }
