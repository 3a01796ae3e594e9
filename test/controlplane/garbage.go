package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A control plane of a test lives for minutes and has a small heap, most of which it allocates at its start. With Go's default of 100 percent, the
// garbage collector takes a quarter of the CPU time of a start. The limit bounds the memory if a test stores much.
const (
	gcPercent   = 400
	memoryLimit = "1GiB"
)

const gcVariable = "GOGC"

// collectLess returns the variables with which programs of Kubernetes collect garbage less often in tests, unless the environment decides about it.
func collectLess(program string) []string {
	of := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
	if !testing.Testing() || os.Getenv(gcVariable) != "" || !slices.Contains(of, filepath.Base(program)) {
		return nil
	}
	return []string{gcVariable + "=" + strconv.Itoa(gcPercent), "GOMEMLIMIT=" + memoryLimit}
}

// RelaxGarbageCollection makes this process, a test, collect garbage less often, unless the environment decides about it.
func RelaxGarbageCollection() {
	if os.Getenv(gcVariable) == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// startInherits runs start while the environment of this process has variables, because envtest gives its programs that environment.
func startInherits(variables []string, start func() error) (err error) {
	defer func() {
		for _, variable := range variables {
			name, _, _ := strings.Cut(variable, "=")
			err = errors.Join(err, os.Unsetenv(name))
		}
	}()
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return start()
}
