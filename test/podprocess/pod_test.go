package podprocess

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// spec mounts a Secret, a ConfigMap, and a Secret's key below the mount of the first.
const spec = `
containers:
- command: [/program, --first=/etc/tls/tls.crt]
  args: [--second=/etc/tls/token/token, --third=1, --token-auth-file=/etc/config/a.csv]
  volumeMounts: [{name: tls, mountPath: /etc/tls}, {name: config, mountPath: /etc/config}, {name: token, mountPath: /etc/tls/token}]
volumes:
- {name: tls, secret: {secretName: tls}}
- {name: config, configMap: {name: config}}
- {name: token, projected: {sources: [{serviceAccountToken: {path: own}}, {secret: {name: access, items: [{key: token, path: token}]}}]}}
`

func TestPod(t *testing.T) {
	template := corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte(spec), &template); err != nil {
		t.Fatal(err)
	}
	dir, meta := t.TempDir(), func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "one", Name: name} }
	p := New("one", template, dir, "https://kube-apiserver\n", "https://127.0.0.1:1\n")
	want := []string{
		"--first=" + dir + "/tls/tls.crt", "--second=" + dir + "/token/token", "--third=1", "--token-auth-file=" + dir + "/config/a.csv",
	}
	if !slices.Equal(p.Args, want) || p.File() != dir+"/tls/tls.crt" {
		t.Errorf("the arguments are %q, want %q", p.Args, want)
	}
	if file, found := p.Flag("token-auth-file"); !found || file != dir+"/config/a.csv" {
		t.Errorf("--token-auth-file=%s", file)
	}
	if _, found := p.Flag("token"); found {
		t.Error("there is no flag --token")
	}

	c := fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: meta("tls"), Data: map[string][]byte{"tls.crt": []byte("https://kube-apiserver\nhttps://kube-apiserver.one\n")}},
		&corev1.Secret{ObjectMeta: meta("access")},
	).Build()
	err := p.Write(t.Context(), c)
	for _, text := range []string{`"config" not found`, "Secret access has no key token yet"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q", err, text)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "tls", "tls.crt"))
	if want := "https://127.0.0.1:1\nhttps://kube-apiserver.one\n"; err != nil || string(content) != want {
		t.Errorf("the file has %q, want %q: %v", content, want, err)
	}
}

func TestArguments(t *testing.T) {
	p := &Pod{Args: []string{"--etcd-servers=https://etcd:2379", "--etcd-cafile=/a", "--secure-port=443", "--v=2"}}
	etcd, _ := url.Parse("http://127.0.0.1:2379")
	args := p.APIServer(4711, etcd, "/one")
	for _, want := range []string{"--etcd-servers=http://127.0.0.1:2379", "--etcd-prefix=/one", "--secure-port=4711", "--v=2"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing: %v", want, args)
		}
	}
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--etcd-cafile") }) {
		t.Errorf("%v has --etcd-cafile", args)
	}
}

func TestResourceManager(t *testing.T) {
	p := &Pod{Directory: "/pod", Volumes: []corev1.Volume{{Name: "certificate"}}}
	got, err := p.ResourceManager([]byte("controllers: {clusterID: a}\nsourceClientConnection: {qps: 1}\n"), Connection{Kubeconfig: "/k", Health: 1, Metrics: "$M", Webhooks: 3})
	want := `controllers:
  clusterID: a
leaderElection:
  leaderElect: false
server:
  healthProbes:
    bindAddress: 127.0.0.1
    port: 1
  metrics:
    bindAddress: 127.0.0.1
    port: $M
  webhooks:
    bindAddress: 127.0.0.1
    port: 3
    tls:
      serverCertDir: /pod/certificate
sourceClientConnection:
  kubeconfig: /k
  qps: 1
`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := p.ResourceManager([]byte("{"), Connection{}); err == nil {
		t.Error("no error for a file that is no YAML")
	}
}
