package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := newCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandLine(t *testing.T) {
	directory := t.TempDir()
	invalid, unreachable := filepath.Join(directory, "invalid.yaml"), filepath.Join(directory, "unreachable.yaml")
	const header = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n"
	for file, text := range map[string]string{
		invalid:     header + "controllers: {projects: {}}\nlogLevel: loud\n",
		unreachable: header + "gardenClientConnection: {kubeconfig: " + filepath.Join(directory, "none") + "}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", "")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"nothing":               {nil, []string{`"config" not set`}},
		"an argument":           {[]string{"serve"}, []string{"unknown command"}},
		"a file that is gone":   {[]string{"--config", filepath.Join(directory, "gone")}, []string{"read the configuration file"}},
		"a file with mistakes":  {[]string{"--config", invalid}, []string{`unknown field "controllers.projects"`, "logLevel"}},
		"no kubeconfig":         {[]string{"--config", unreachable}, []string{"garden: read the kubeconfig"}},
		"a flag that is not it": {[]string{"--kubeconfig", "x"}, []string{"unknown flag"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, test.args...)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	help, err := execute(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Examples:", "controller-manager --config controller-manager.yaml", "KUBECONFIG", "--version"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, help)
		}
	}
	if out, err := execute(t, "--version"); err != nil || out != version+"\n" {
		t.Errorf("got %q and %v", out, err)
	}
}
