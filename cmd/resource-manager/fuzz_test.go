package main

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzKubeconfig: whatever a kubeconfig says, a configuration that comes of it runs no program, calls no plugin, reads no key from a
// file and acts as nobody else.
func FuzzKubeconfig(f *testing.F) {
	for _, user := range []string{
		"token: t", "tokenFile: /token", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "auth-provider: {name: oidc}", "as: x",
		"client-key: /k", "username: u, password: p", "as-user-extra: {a: [b]}", "token: t, exec: null", "Exec: {command: sh}", "!!binary aaaa: x",
	} {
		f.Add([]byte(kubeconfigWith(user)))
	}
	f.Add([]byte(`{"current-context":"a","contexts":[{"name":"a","context":{"user":"u","cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"x"}}],` +
		`"users":[{"name":"u","user":{"token":"x"}},{"name":"u","user":{"exec":{"command":"sh"}}}]}`))
	path := filepath.Join(f.TempDir(), "kubeconfig")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := baseConfig(path)
		if err != nil {
			if config != nil {
				t.Fatal("a configuration came with the error")
			}
			return
		}
		if config.ExecProvider != nil || config.AuthProvider != nil || config.AuthConfigPersister != nil || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("%+v reaches beyond the kubeconfig", config)
		}
		if as := config.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups)+len(as.Extra) > 0 {
			t.Errorf("it acts as %+v", as)
		}
	})
}
