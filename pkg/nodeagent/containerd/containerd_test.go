package containerd

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

func TestHosts(t *testing.T) {
	got := string(Hosts(&extensionsv1alpha1.RegistryConfig{
		Upstream: "docker.io", Server: ptr.To("https://registry-1.docker.io"),
		Hosts: []extensionsv1alpha1.RegistryHost{
			{URL: "https://second.example.com", CACerts: []string{"/a.crt"}, OverridePath: ptr.To(true)},
			{URL: "http://first.example.com", Capabilities: []extensionsv1alpha1.RegistryCapability{"push"}},
		},
	}))
	want := `server = "https://registry-1.docker.io"

[host."https://second.example.com"]
  capabilities = ["pull", "resolve"]
  ca = ["/a.crt"]
  override_path = true

[host."http://first.example.com"]
  capabilities = ["push"]
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	evil := string(Hosts(&extensionsv1alpha1.RegistryConfig{Server: ptr.To("https://x\"\n[host.\"https://evil\"]")}))
	var parsed map[string]any
	if err := toml.Unmarshal([]byte(evil), &parsed); err != nil || len(parsed) != 1 {
		t.Errorf("a server with a quote becomes\n%s\n%v", evil, err)
	}
}

func TestConfig(t *testing.T) {
	cri := &extensionsv1alpha1.CRIConfig{Name: "containerd", Containerd: &extensionsv1alpha1.ContainerdConfig{
		SandboxImage: "example.com/pause:1",
		Plugins: []extensionsv1alpha1.PluginConfig{
			{Path: []string{"one"}, Values: &apiextensionsv1.JSON{Raw: []byte(`{"text": "a", "number": 5, "list": [{"n": 1.5}]}`)}},
			{Path: []string{"other", "gone"}, Op: ptr.To(extensionsv1alpha1.RemovePluginPathOperation)},
			{Path: []string{"never", "there"}, Op: ptr.To(extensionsv1alpha1.RemovePluginPathOperation)},
		},
	}}
	for name, test := range map[string]struct {
		before string
		want   []string
	}{
		"version 2": {"version = 2\nroot = \"/x\"\n[plugins.other]\n  gone = 1\n  stays = 2\n", []string{
			`sandbox_image = "example.com/pause:1"`, `bin_dir = "/opt/cni/bin"`, `[plugins."io.containerd.grpc.v1.cri".registry]`, `root = "/x"`, "stays = 2",
		}},
		"version 3": {"version = 3\nimports = [\"/mine/*.toml\"]\n", []string{
			`sandbox = "example.com/pause:1"`, `bin_dirs = ["/opt/cni/bin"]`, `[plugins."io.containerd.cri.v1.images".registry]`, "/mine/*.toml",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Config([]byte(test.before), cri)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(test.want, "SystemdCgroup = true", "/etc/containerd/conf.d/*.toml", `config_path = "/etc/containerd/certs.d"`, "number = 5", "n = 1.5") {
				if !strings.Contains(string(got), want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			if strings.Contains(string(got), "gone") {
				t.Errorf("has what is removed:\n%s", got)
			}
			if again, err := Config(got, cri); err != nil || string(again) != string(got) {
				t.Errorf("the second time, it becomes\n%s\n%v", again, err)
			}
		})
	}
	for name, before := range map[string]string{"no TOML": "{", "no table": "plugins = 5"} {
		if _, err := Config([]byte(before), cri); err == nil || !strings.Contains(err.Error(), "/etc/containerd/config.toml") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
