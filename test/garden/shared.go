package garden

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// Binary builds the API server once for the tests of a package and returns its path. Its version is v0.0.0-test. Packages are
// tested at once, so each builds its own and puts it in the common place in one step.
var Binary = sync.OnceValues(func() (string, error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "test", "apiserver")
	own := fmt.Sprintf("%s-%d", path, os.Getpid())
	arguments := []string{"build", "-C", root, "-ldflags", "-X main.version=v0.0.0-test", "-o", own}
	if directory := os.Getenv("PROCESSES_COVERDIR"); directory != "" { // make coverage
		arguments = append(arguments, "-cover", "-covermode=atomic", "-coverpkg=./cmd/...,./pkg/...")
		if err := os.Setenv("GOCOVERDIR", directory); err != nil { // go test has set it to one that it deletes
			return "", err
		}
	}
	if output, err := exec.Command("go", append(arguments, "./cmd/apiserver")...).CombinedOutput(); err != nil { //nolint:gosec // of a test
		return "", fmt.Errorf("build the API server: %w\n%s", err, output)
	}
	return path, os.Rename(own, path)
})

// Shared is one garden for all tests of a package, like [controlplane.Shared].
type Shared struct {
	// Options of the garden. APIServer is set to the result of Binary if it is empty.
	Options Options

	once   sync.Once
	garden *Garden
	err    error
}

// Run runs the package's tests, stops the garden and returns the exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.garden == nil {
		return code
	}
	if err := s.garden.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Get returns the garden. It skips the test under -short, and fails it if there is no garden.
func (s *Shared) Get(tb testing.TB) *Garden {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a control plane, which -short excludes")
	}
	s.once.Do(func() {
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
