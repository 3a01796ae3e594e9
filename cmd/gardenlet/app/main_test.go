package app

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/program/programtest"
)

var tested = programtest.Program{Name: "gardenlet", New: newCommand, Version: version}

func TestCommandLine(t *testing.T) {
	tested.Refuses(t, map[string]programtest.Case{"a file with mistakes": {
		File: "kind: GardenletConfiguration\nfeatureGates: {Unheard: true}\n",
		Want: []string{"apiVersion", "featureGates[Unheard]", "seedConfig: Required value"},
	}})
}

func TestHelpAndVersion(t *testing.T) { tested.Explains(t) }
