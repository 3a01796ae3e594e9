package controlplane

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is one control plane for all tests of a package. The first test that requests it starts it, so that a run
// of tests without a control plane is fast.
//
//	var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		config := shared.Get(t).Config()
//		…
//	}
type Shared struct {
	// Options of the control plane.
	Options Options

	once         sync.Once
	controlPlane *ControlPlane
	err          error
}

// Run runs the package's tests, stops the control plane and returns the exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.controlPlane == nil {
		return code
	}
	if err := s.controlPlane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Get returns the control plane. It skips the test under -short, and fails it if there is no control plane.
func (s *Shared) Get(tb testing.TB) *ControlPlane {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a control plane, which -short excludes")
	}
	// Do not use the test's own context, because the control plane outlives the test.
	s.once.Do(func() {
		RelaxGarbageCollection()
		s.controlPlane, s.err = Start(context.Background(), s.Options)
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.controlPlane
}
