package tokenrequestor

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// example is the kubeconfig in the concept document, unchanged.
const example = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: AAAA
    server: some-server-url
  name: shoot--foo--bar
contexts:
- context:
    cluster: shoot--foo--bar
    user: shoot--foo--bar-token
  name: shoot--foo--bar
current-context: shoot--foo--bar
kind: Config
preferences: {}
users:
- name: shoot--foo--bar-token
  user:
    token: ""
`

func TestFillKubeconfig(t *testing.T) {
	config, err := readKubeconfig([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	text, err := config.with("secret-token", []byte("bundle"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`token: ""`, "token: secret-token", "AAAA", base64.StdEncoding.EncodeToString([]byte("bundle"))).Replace(example)
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	loaded, err := clientcmd.Load(text)
	if err != nil || loaded.AuthInfos["shoot--foo--bar-token"].Token != "secret-token" {
		t.Errorf("kubectl reads %v, %v", loaded, err)
	}
}

func TestKubeconfigKeepsWhatItDoesNotKnow(t *testing.T) {
	for name, text := range map[string]string{
		"JSON": `{"kind":"Config","apiVersion":"v1","current-context":"a","contexts":[{"name":"a","context":{"user":"u","cluster":"c","namespace":"ns"}}],` +
			`"clusters":[{"name":"b","cluster":{"server":"other"}},{"name":"c","cluster":{"server":"s","newer":9007199254740993}}],"users":[{"name":"v","user":{"token":"keep"}},{"name":"u"}],"extra":[1]}`,
		"YAML": "current-context: a\ncontexts: [{name: a, context: {user: u, cluster: c, namespace: ns}}]\n" +
			"clusters: [{name: b, cluster: {server: other}}, {name: c, cluster: {server: s, newer: 9007199254740993}}]\nusers: [{name: v, user: {token: keep}}, {name: u}]\nextra: [1] # comment\n",
	} {
		config, err := readKubeconfig([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if config.token() != "" {
			t.Errorf("%s: a token exists", name)
		}
		filled, err := config.with("t", nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, part := range []string{"token: t", "token: keep", "newer: 9007199254740993", "extra:\n- 1", "server: other", "namespace: ns"} {
			if !strings.Contains(string(filled), part) {
				t.Errorf("%s: %q is missing in\n%s", name, part, filled)
			}
		}
		if again, err := readKubeconfig(filled); err != nil || again.token() != "t" {
			t.Errorf("%s: read again: %v", name, err)
		}
	}
}

func TestBadKubeconfigs(t *testing.T) {
	user := func(fields string) string { return strings.Replace(example, `token: ""`, fields, 1) }
	for name, test := range map[string]struct{ text, says string }{
		"no YAML":               {"{secret-data", "neither YAML nor JSON: see line 1"},
		"a text":                {"secret-data", "of the wrong type"},
		"a list":                {"[]", "of the wrong type"},
		"null":                  {"null", "empty or not an object"},
		"another object":        {"kind: Deployment\napiVersion: apps/v1", "not a kubeconfig"},
		"a wrong type":          {strings.Replace(example, "users:", "users: secret-data\nx:", 1), "of the wrong type"},
		"a bad CA":              {strings.Replace(example, "AAAA", "secret data", 1), "of the wrong type"},
		"no current context":    {strings.Replace(example, "current-context:", "x:", 1), "does not set current-context"},
		"a missing context":     {strings.Replace(example, "current-context: shoot", "current-context: other", 1), `"other--foo--bar" is not among its contexts`},
		"a missing user":        {strings.Replace(example, "user: shoot", "user: other", 1), `user "other--foo--bar-token"`},
		"a missing cluster":     {strings.Replace(example, "cluster: shoot", "cluster: other", 1), `cluster "other--foo--bar"`},
		"a program":             {user("exec: {command: secret-data, apiVersion: client.authentication.k8s.io/v1}"), "remove exec"},
		"an auth-provider":      {user("auth-provider: {name: secret-data}"), "remove it"},
		"anchors":               {"a: &a [secret-data]\nb: *a\n" + example, "anchors and aliases"},
		"an unknown anchor":     {"b: *secret-data\n" + example, "neither YAML nor JSON"},
		"a bomb":                {"a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a,", 100000) + "]\n" + example, "anchors and aliases"},
		"too long":              {example + strings.Repeat("#", maxKubeconfig), "more than the 524288 allowed"},
		"deep":                  {strings.Repeat("[", 100000), "neither YAML nor JSON"},
		"one document too many": {"a: 1\n---\n" + example, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readKubeconfig([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got the error %v, want one with %q", err, test.says)
			}
		})
	}
}

func TestFill(t *testing.T) {
	bundle := []byte("bundle")
	filled, err := mustRead(t, map[string][]byte{"kubeconfig": []byte(example)}).fill("t", bundle)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data   map[string][]byte
		bundle []byte
		want   changes
	}{
		"an empty Secret":              {nil, nil, changes{"token": []byte("t")}},
		"with a bundle":                {map[string][]byte{"other": nil}, bundle, changes{"token": []byte("t"), "bundle.crt": bundle}},
		"a bundle that is unwanted":    {map[string][]byte{"bundle.crt": bundle}, nil, changes{"token": []byte("t"), "bundle.crt": nil}},
		"as it should be":              {map[string][]byte{"token": []byte("t"), "bundle.crt": bundle}, bundle, changes{}},
		"a kubeconfig":                 {map[string][]byte{"kubeconfig": []byte(example), "token": []byte("old")}, bundle, filled},
		"a kubeconfig as it should be": {filled, bundle, changes{}},
		"an empty kubeconfig":          {map[string][]byte{"kubeconfig": nil}, nil, changes{"token": []byte("t")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mustRead(t, test.data).fill("t", test.bundle)
			if err != nil || !maps.EqualFunc(got, test.want, bytes.Equal) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestWithdraw(t *testing.T) {
	filled, err := mustRead(t, map[string][]byte{"kubeconfig": []byte(example)}).fill("t", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data map[string][]byte
		want []string
	}{
		"an empty Secret":                  {nil, nil},
		"a token":                          {map[string][]byte{"token": nil, "bundle.crt": []byte("b"), "other": nil}, []string{"bundle.crt", "token"}},
		"a kubeconfig with a token":        {filled, []string{"kubeconfig"}},
		"a kubeconfig without one":         {map[string][]byte{"kubeconfig": []byte(example)}, nil},
		"a kubeconfig that is none":        {map[string][]byte{"kubeconfig": []byte("x"), "token": nil}, []string{"token"}},
		"a kubeconfig that is none at all": {map[string][]byte{"kubeconfig": {0xff}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := withdraw(test.data)
			if err != nil || !slices.Equal(slices.Sorted(maps.Keys(got)), test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if text := got["kubeconfig"]; text != nil && string(text) != example {
				t.Errorf("the template is\n%s", text)
			}
		})
	}
}

func mustRead(t *testing.T, data map[string][]byte) contents {
	t.Helper()
	content, err := readContents(data)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// FuzzKubeconfig checks that a kubeconfig that is accepted has the token afterwards, as read by this package and by kubectl,
// and is otherwise unchanged.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"current-context":"a","contexts":[{"name":"a","context":{"user":"u","cluster":"c"}}],"clusters":[{"name":"c"}],"users":[{"name":"u","user":null}]}`))
	f.Add([]byte("a: &a [b]\nc: *a"))
	f.Add([]byte("users: [{name: 1}]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := readKubeconfig(raw)
		if err != nil {
			return
		}
		first, err := config.with("a-token", []byte("bundle"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := readKubeconfig(first)
		if err != nil {
			t.Fatalf("%v in\n%s", err, first)
		}
		if again.token() != "a-token" || !again.hasBundle([]byte("bundle")) {
			t.Fatalf("the token or the bundle is not in\n%s", first)
		}
		if loaded, err := clientcmd.Load(first); err == nil {
			context := loaded.Contexts[loaded.CurrentContext]
			if user := loaded.AuthInfos[context.AuthInfo]; user == nil || user.Token != "a-token" || user.Exec != nil || user.AuthProvider != nil {
				t.Fatalf("kubectl would not use only the token: %+v in\n%s", user, first)
			}
		}
		second, err := again.with("a-token", []byte("bundle"))
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("filled in twice, it is\n%s\nand once\n%s", second, first)
		}
	})
}
