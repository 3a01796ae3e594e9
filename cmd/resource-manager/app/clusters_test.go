package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// kubeconfigWith returns a kubeconfig whose only user has the given fields.
func kubeconfigWith(user string) string {
	return `apiVersion: v1
kind: Config
current-context: shoot
clusters: [{name: shoot, cluster: {server: https://shoot.example.com}}]
contexts: [{name: shoot, context: {cluster: shoot, user: me}}]
users: [{name: me, user: {` + user + `}}]
`
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// expectError checks that err is not nil and contains all parts.
func expectError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}

func TestRestConfig(t *testing.T) {
	connection := configv1alpha1.ClientConnection{}
	connection.Kubeconfig = writeFile(t, kubeconfigWith("token: t"))
	connection.QPS, connection.Burst = 12.5, 34
	connection.ContentType, connection.AcceptContentTypes = "application/json", "application/yaml"
	config, err := restConfig(&connection)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://shoot.example.com" || config.BearerToken != "t" || config.QPS != 12.5 || config.Burst != 34 ||
		config.ContentType != "application/json" || config.AcceptContentTypes != "application/yaml" ||
		config.UserAgent != "resource-manager/"+version {
		t.Errorf("got %+v", config)
	}
}

func TestBaseConfigErrors(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	padding := "# " + strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		content string
		says    []string
	}{
		"not YAML":        {"a: b: c", []string{"read kubeconfig"}},
		"another kind":    {"apiVersion: v1\nkind: ConfigMap\n", []string{"read kubeconfig"}},
		"empty":           {"", []string{"invalid configuration"}},
		"bad base64":      {kubeconfigWith("client-key-data: '***'"), []string{"read kubeconfig"}},
		"runs a program":  {kubeconfigWith("exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"), []string{`"me" must not use "exec"`}},
		"no such context": {strings.Replace(kubeconfigWith("token: t"), "current-context: shoot", "current-context: x", 1), []string{"invalid configuration", "specified context: x"}},
		"two identities":  {kubeconfigWith("token: t, username: u, password: p"), []string{"more than one authentication method"}},
		"far too large":   {kubeconfigWith("token: t") + padding, []string{"more than the 1048576 allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, test.content)
			config, err := baseConfig(path)
			expectError(t, err, append(test.says, path)...)
			if config != nil {
				t.Error("a configuration was returned with the error")
			}
		})
	}
	_, err := baseConfig(filepath.Join(t.TempDir(), "missing"))
	expectError(t, err, "read the kubeconfig", "missing", "no such file")
	_, err = baseConfig("")
	expectError(t, err, "no kubeconfig is set, and the process does not run in a Pod")
}
