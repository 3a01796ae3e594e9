package app

import (
	"strings"
	"testing"
)

// TestFlags checks that one error names all invalid flags.
func TestFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"controllers": {"--namespace is not set"},
		"controllers --namespace a --log-level x --log-format y --extension-classes z --workers":                          {"unknown flag"},
		"controllers --namespace a --log-level x --log-format y --extension-classes z --max-concurrent-reconciles 0":      {"--log-level", "--log-format", `no class "z"`, "at least 1"},
		"controllers --namespace a --machine-env B --dns-zones a_b --dns-configmap c --leader-election-renew-deadline=1m": {"--machine-env", "--dns-zones", "--dns-configmap", "--leader-election-lease-duration"},
		"controllers --namespace a --kubeconfig /nowhere":                                                                 {"/nowhere"},
		"admission":                          {"--namespace is not set"},
		"bastion":                            {`"authorized-keys" not set`},
		"bastion --authorized-keys /nowhere": {"read the authorized keys"},
		"other":                              {"unknown command"},
	} {
		command := newCommand()
		command.SetArgs(strings.Fields(args))
		err := command.ExecuteContext(t.Context())
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", args, err, text)
			}
		}
	}
}
