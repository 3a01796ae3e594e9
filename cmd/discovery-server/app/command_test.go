package app

import (
	"bytes"
	"strings"
	"testing"
)

// TestCommandLine checks that wrong flags are refused with an error that names them, and that the help and the version are printed.
func TestCommandLine(t *testing.T) {
	for want, args := range map[string][]string{
		"--tls-cert-file":             {"--tls-private-key-file=a"},
		"garden: read the kubeconfig": {"--tls-cert-file=a", "--tls-private-key-file=b", "--kubeconfig=/does/not/exist"},
		"unknown flag":                {"--secrets"},
	} {
		command := newCommand()
		command.SetArgs(args)
		command.SetOut(&bytes.Buffer{})
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
	for want, args := range map[string][]string{"--workload-identity-jwks-file": {"--help"}, version: {"--version"}} {
		command, out := newCommand(), &bytes.Buffer{}
		command.SetArgs(args)
		command.SetOut(out)
		if err := command.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: got %q, %v", args, out, err)
		}
	}
}
