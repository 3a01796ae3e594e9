package app

import (
	"bytes"
	"strings"
	"testing"
)

// TestCommandLine checks that wrong flags are refused with an error that names them, and that the help and the version are printed.
func TestCommandLine(t *testing.T) {
	for want, args := range map[string][]string{
		"--gateway is missing":      nil,
		"want NAMESPACE/NAME":       {"--gateway=one"},
		"--max-connections":         {"--gateway=a/b", "--max-connections=0"},
		"seed: read the kubeconfig": {"--gateway=a/b", "--kubeconfig=/does/not/exist"},
		"--gateway is \"one\"":      {"node-proxy", "--address=127.0.0.1:0", "--gateway=one", "--host=one:443"},
		"\"one\" is not an IP":      {"node-address", "--ip-address=one"},
		"unknown flag":              {"--secrets"},
	} {
		command := newCommand()
		command.SetArgs(append([]string{}, args...))
		command.SetOut(&bytes.Buffer{})
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
	for want, args := range map[string][]string{"--proxy-protocol": {"--help"}, version: {"--version"}} {
		command, out := newCommand(), &bytes.Buffer{}
		command.SetArgs(args)
		command.SetOut(out)
		if err := command.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: got %q, %v", args, out, err)
		}
	}
}
