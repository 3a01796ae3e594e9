package app

import (
	"bytes"
	"strings"
	"testing"
)

// TestFlags checks that invalid flags are errors that name the flag, before anything is started.
func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"nothing": {nil, []string{"--cluster-identity is required", "--etcd-servers must be specified", "--tls-cert-file and --tls-private-key-file are required"}},
		"logging": {[]string{"--log-level", "loud", "--log-format", "xml"}, []string{`--log-level: unknown level "loud"`, `--log-format: unknown format "xml"`}},
		"a key without a certificate": {
			[]string{"--tls-private-key-file", "tls.key"}, []string{"--tls-cert-file and --tls-private-key-file are required"},
		},
		"durations": {
			[]string{"--shoot-admin-kubeconfig-max-expiration", "1s"}, []string{"--shoot-admin-kubeconfig-max-expiration is 1s"},
		},
		"an argument": {[]string{"serve"}, []string{`unknown command "serve"`}},
	} {
		t.Run(name, func(t *testing.T) {
			command, err := newCommand()
			if err != nil {
				t.Fatal(err)
			}
			command.SetArgs(test.args)
			if err = command.ExecuteContext(t.Context()); err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	command, err := newCommand()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"--help"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Examples:", "--cluster-identity", "--encryption-provider-config", "--log-level"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help lacks %q", want)
		}
	}
}
