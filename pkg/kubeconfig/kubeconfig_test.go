package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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

func TestCheckUsers(t *testing.T) {
	for name, test := range map[string]struct {
		user      clientcmdapi.AuthInfo
		forbidden []string
	}{
		"nothing":            {clientcmdapi.AuthInfo{}, nil},
		"token":              {clientcmdapi.AuthInfo{Token: "t"}, nil},
		"token file":         {clientcmdapi.AuthInfo{TokenFile: "/token"}, nil},
		"password":           {clientcmdapi.AuthInfo{Username: "u", Password: "p"}, nil},
		"certificate":        {clientcmdapi.AuthInfo{ClientCertificateData: []byte("c"), ClientKeyData: []byte("k")}, nil},
		"program":            {clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "x"}}, []string{"exec"}},
		"plugin":             {clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{}}, []string{"auth-provider"}},
		"certificate's file": {clientcmdapi.AuthInfo{ClientCertificate: "/c"}, []string{"client-certificate"}},
		"key's file":         {clientcmdapi.AuthInfo{ClientKey: "/k"}, []string{"client-key"}},
		"somebody else":      {clientcmdapi.AuthInfo{Impersonate: "x"}, []string{"as"}},
		"somebody's UID":     {clientcmdapi.AuthInfo{ImpersonateUID: "x"}, []string{"as"}},
		"somebody's groups":  {clientcmdapi.AuthInfo{ImpersonateGroups: []string{"x"}}, []string{"as-groups"}},
		"somebody's extra":   {clientcmdapi.AuthInfo{ImpersonateUserExtra: map[string][]string{"x": {"y"}}}, []string{"as-user-extra"}},
		"several at once": {
			clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{}, ClientKey: "/k", Token: "hunter2"}, []string{"exec", "client-key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkUsers(&clientcmdapi.Config{AuthInfos: map[string]*clientcmdapi.AuthInfo{"me": &test.user}})
			if len(test.forbidden) == 0 {
				if err != nil {
					t.Fatalf("error: %v", err)
				}
				return
			}
			parts := []string{"client-certificate-data"}
			for _, field := range test.forbidden {
				parts = append(parts, `user "me" must not use "`+field+`"`)
			}
			expectError(t, err, parts...)
			if got := strings.Count(err.Error(), "must not use"); got != len(test.forbidden) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %q, want %d fields and no content", err, len(test.forbidden))
			}
		})
	}
}

func TestCheckUsersLooksAtAllUsers(t *testing.T) {
	err := checkUsers(&clientcmdapi.Config{AuthInfos: map[string]*clientcmdapi.AuthInfo{
		"good": {Token: "t"}, "bad": {ClientKey: "/k"}, "worse": {Exec: &clientcmdapi.ExecConfig{}},
	}})
	expectError(t, err, `user "bad"`, `user "worse"`)
}

// FuzzRead checks, for all accepted kubeconfigs, that the resulting configuration runs no program, calls no plugin, reads no
// key from a file and impersonates no user.
func FuzzRead(f *testing.F) {
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
		config, err := Read(path)
		if err != nil {
			if config != nil {
				t.Fatal("a configuration was returned with the error")
			}
			return
		}
		if config.ExecProvider != nil || config.AuthProvider != nil || config.AuthConfigPersister != nil || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("%+v refers to something outside the kubeconfig", config)
		}
		if as := config.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups)+len(as.Extra) > 0 {
			t.Errorf("the configuration impersonates %+v", as)
		}
	})
}
