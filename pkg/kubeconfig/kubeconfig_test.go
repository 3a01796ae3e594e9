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

// TestCheckInline checks that a kubeconfig for a program in a seed contains everything it needs.
func TestCheckInline(t *testing.T) {
	with := func(cluster, user string) string {
		return `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {` + cluster + `}}], users: [{name: "*.example.org", user: {` + user + `}}]}`
	}
	const server = "server: https://shoot.example.com"
	for name, test := range map[string]struct{ content, field string }{
		"a token":                {with(server, "token: t"), ""},
		"a password":             {with(server, "username: u, password: p"), ""},
		"certificates":           {with(server+", certificate-authority-data: Y2E=", "client-certificate-data: Yw==, client-key-data: aw=="), ""},
		"only users":             {`{apiVersion: v1, kind: Config, users: [{name: a, user: {token: t}}]}`, ""},
		"a program":              {with(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"), `"exec"`},
		"a plugin":               {with(server, "auth-provider: {name: oidc}"), `"auth-provider"`},
		"a token's file":         {with(server, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), `"tokenFile"`},
		"a certificate's file":   {with(server, "client-certificate: /c"), `"client-certificate"`},
		"a key's file":           {with(server, "client-key: /k"), `"client-key"`},
		"another user":           {with(server, "token: t, as: root"), `"as"`},
		"other groups":           {with(server, "token: t, as-groups: [root]"), `"as-groups"`},
		"a CA's file":            {with(server+", certificate-authority: /ca", "token: t"), `"certificate-authority"`},
		"no verification":        {with(server+", insecure-skip-tls-verify: true", "token: t"), `"insecure-skip-tls-verify"`},
		"no TLS":                 {with("server: 'http://shoot.example.com'", "token: t"), "https://"},
		"no scheme":              {with("server: shoot.example.com", "token: t"), "https://"},
		"a later user":           {`{apiVersion: v1, kind: Config, users: [{name: a, user: {token: t}}, {name: b, user: {tokenFile: /t}}]}`, `"tokenFile"`},
		"something else":         {"a", "parse the kubeconfig"},
		"too much":               {strings.Repeat("a", maxSize+1), "more than"},
		"another type of field":  {with(server, "token: [hunter2]"), "parse the kubeconfig"},
		"another type of object": {`{apiVersion: v1, kind: Pod}`, "parse the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckInline([]byte(test.content))
			if test.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			expectError(t, err, test.field)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error contains a credential: %v", err)
			}
		})
	}
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
