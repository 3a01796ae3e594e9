// Package programtest tests the command lines of programs.
package programtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Program is a program under test.
type Program struct {
	// Name of the program, and of its configuration file in the examples of its help.
	Name string
	// New returns its command, and Version is what it reports.
	New     func() *cobra.Command
	Version string
}

func (p Program) execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := p.New()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// Case is a configuration file that the program refuses, with texts of the error.
type Case struct {
	File string
	Want []string
}

// Refuses checks that the program refuses wrong command lines, and the configuration files of cases, by their names. It clears
// KUBECONFIG.
func (p Program) Refuses(t *testing.T, cases map[string]Case) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	directory := t.TempDir()
	refuses := func(name string, want []string, args ...string) {
		t.Run(name, func(t *testing.T) {
			_, err := p.execute(t, args...)
			for _, want := range want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
			}
		})
	}
	refuses("nothing", []string{`"config" not set`})
	refuses("an argument", []string{"unknown command"}, "serve")
	refuses("a flag that is not it", []string{"unknown flag"}, "--kubeconfig", "x")
	refuses("a file that is gone", []string{"read the configuration file"}, "--config", filepath.Join(directory, "gone"))
	for name, test := range cases {
		file := filepath.Join(directory, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(file, []byte(test.File), 0o600); err != nil {
			t.Fatal(err)
		}
		refuses(name, test.Want, "--config", file)
	}
}

// Explains checks the help and the version of the program.
func (p Program) Explains(t *testing.T) {
	t.Helper()
	help, err := p.execute(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Examples:", p.Name + " --config " + p.Name + ".yaml", "KUBECONFIG", "--version"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, help)
		}
	}
	if out, err := p.execute(t, "--version"); err != nil || out != p.Version+"\n" {
		t.Errorf("got %q and %v", out, err)
	}
}
