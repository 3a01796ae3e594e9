package garden

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/trellis-k8s/trellis/cmd/apiserver/app"
	"github.com/trellis-k8s/trellis/test/controlplane"
)

// Binary builds the API server once for the tests of a package and returns its path.
var Binary = sync.OnceValues(controlplane.BuildProgram[app.Program])

// Shared is one garden for all tests of a package, like [controlplane.Shared].
type Shared struct {
	// Options of the garden. APIServer is set to the result of Binary if it is empty.
	Options Options

	once   sync.Once
	garden *Garden
	err    error
}

// Run runs the package's tests, stops the garden and returns the exit code.
func (s *Shared) Run(m *testing.M) int { return s.Stop(m.Run()) }

// Stop stops the garden if a test has started it. Call it after the tests of a package with their exit code, which it
// returns.
func (s *Shared) Stop(code int) int {
	if s.garden == nil {
		return code
	}
	if err := s.garden.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Get returns the garden. It skips the test under -short, and fails it if the garden cannot be started.
func (s *Shared) Get(tb testing.TB) *Garden {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a control plane, which -short excludes")
	}
	s.once.Do(func() {
		controlplane.RelaxGarbageCollection()
		if s.Options.APIServer == "" {
			if s.Options.APIServer, s.err = Binary(); s.err != nil {
				return
			}
		}
		s.garden, s.err = Start(context.Background(), s.Options)
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.garden
}
