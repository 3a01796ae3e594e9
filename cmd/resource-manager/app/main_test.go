package app

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// execute runs the command and returns what it printed.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var output bytes.Buffer
	command := newCommand()
	command.SetArgs(args)
	command.SetOut(&output)
	command.SetErr(&output)
	err := command.ExecuteContext(t.Context())
	return output.String(), err
}

func TestVersion(t *testing.T) {
	if output, err := execute(t, "--version"); err != nil || output != version+"\n" {
		t.Errorf("got %q, %v; want only the version", output, err)
	}
}

// TestLinksNoCommandLine checks that the program links no package that only kubectl mr needs, which has Helm and kustomize. Of
// the packages of kubectl mr it may link only those that the web page uses.
func TestLinksNoCommandLine(t *testing.T) {
	dependencies, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(dependencies), "/pkg/managedresource\n") {
		t.Errorf("these are not the dependencies of the program:\n%s", dependencies)
	}
	const own = "github.com/trellis-k8s/trellis/pkg/cli/"
	ofPage := []string{"console", "dryrun", "events", "explain", "preview", "redact", "relations", "screen", "snapshot", "state", "watch"}
	for dependency := range strings.Lines(string(dependencies)) {
		dependency = strings.TrimSpace(dependency)
		for _, foreign := range []string{"helm.sh/", "sigs.k8s.io/kustomize/", "k8s.io/cli-runtime/pkg/generic", "k8s.io/cli-runtime/pkg/resource", own} {
			name, isOwn := strings.CutPrefix(dependency, own)
			if strings.HasPrefix(dependency, foreign) && dependency != "k8s.io/cli-runtime/pkg/genericiooptions" && (!isOwn || !slices.Contains(ofPage, name)) {
				t.Errorf("the program links %s", dependency)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	output, err := execute(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"resource-manager --config FILE", "--config string", "--extra-target-namespace", "KUBECONFIG", "TARGET_KUBECONFIG", "docs/configuration.md",
	} {
		if !strings.Contains(output, part) {
			t.Errorf("the help does not contain %q:\n%s", part, output)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	const header = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n"
	wrong := header + `
leaderElection: {resourceNamespace: garden}
logLevel: loud
sever: {}
controllers:
  resourceClass: ""
  managedResource: {concurrentSyncs: 0, syncPeriod: 1ms, maxSecretSize: 0}
`
	valid := header + "leaderElection: {resourceNamespace: garden}\nsourceClientConnection: {kubeconfig: /nowhere/source}\n"
	t.Setenv("KUBECONFIG", "")
	t.Setenv("TARGET_KUBECONFIG", "")

	for name, test := range map[string]struct {
		args []string
		says []string
	}{
		"no flag":           {nil, []string{`required flag(s) "config" not set`}},
		"an argument":       {[]string{"--config", "x", "hello"}, []string{`"hello"`}},
		"an unknown flag":   {[]string{"--colour"}, []string{"--colour"}},
		"no such file":      {[]string{"--config", "/nowhere/config"}, []string{"/nowhere/config", "no such file"}},
		"an empty file":     {[]string{"--config", writeFile(t, "")}, []string{"empty", "apiVersion"}},
		"not YAML":          {[]string{"--config", writeFile(t, "a: b: c")}, []string{"not valid YAML"}},
		"many mistakes":     {[]string{"--config", writeFile(t, wrong)}, []string{"logLevel", "sever", "controllers.resourceClass", "concurrentSyncs", "syncPeriod", "maxSecretSize"}},
		"source kubeconfig": {[]string{"--config", writeFile(t, valid)}, []string{"source cluster: read the kubeconfig", "/nowhere/source"}},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := execute(t, test.args...)
			expectError(t, err, test.says...)
			if output != "" {
				t.Errorf("it printed %q, want only the error, once", output)
			}
		})
	}
}

func TestKubeconfigOfTheEnvironmentWins(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/environment")
	_, err := execute(t, "--config", writeFile(t, "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\n"+
		"kind: ResourceManagerConfiguration\nleaderElection: {resourceNamespace: garden}\nsourceClientConnection: {kubeconfig: /nowhere/file}\n"))
	expectError(t, err, "/nowhere/environment")
}

func TestCacheKeepsNothingOfSecrets(t *testing.T) {
	meta := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "x", UID: "u", ResourceVersion: "7", Labels: map[string]string{"l": "hunter2"},
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"},
		},
	}
	got := keepNameAndVersion(meta)
	if got.Namespace != "garden" || got.Name != "x" || got.UID != "u" || got.ResourceVersion != "7" || got.Kind != "Secret" {
		t.Errorf("got %+v, want the name and version", got)
	}
	if got.Labels != nil || got.Annotations != nil {
		t.Errorf("got %v %v, want no labels or annotations", got.Labels, got.Annotations)
	}
}

// TestCacheKeepsWhatTheTokenRequestorNeeds checks that the cache drops everything else, such as the copy of the data in
// kubectl's annotation.
func TestCacheKeepsWhatTheTokenRequestorNeeds(t *testing.T) {
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot", "other": "x"},
		Annotations: map[string]string{
			"serviceaccount.resources.gardener.cloud/name": "a", "serviceaccount.resources.gardener.cloud/namespace": "b",
			"serviceaccount.resources.gardener.cloud/labels": "{}", "kubectl.kubernetes.io/last-applied-configuration": "secret",
			"token-requestor.resources.gardener.cloud/target-secret-name": "c", "token-requestor.resources.gardener.cloud/target-secret-namespace": "d",
		},
	}}
	got := keepNameAndVersion(meta)
	if len(got.Labels) != 2 || len(got.Annotations) != 4 || got.Annotations["kubectl.kubernetes.io/last-applied-configuration"] != "" {
		t.Errorf("got %+v", got)
	}
}

func TestOwnTarget(t *testing.T) {
	config := &configv1alpha1.ResourceManagerConfiguration{}
	if hasOwnTarget(config, true) {
		t.Error("without a target connection, the source must be the target")
	}
	config.TargetClientConnection = &configv1alpha1.ClientConnection{}
	if hasOwnTarget(config, false) {
		t.Error("outside of a pod, without a kubeconfig, the source must be the target")
	}
	if !hasOwnTarget(config, true) {
		t.Error("in a pod, without a kubeconfig, the target must be the pod's own cluster")
	}
	config.TargetClientConnection.Kubeconfig = "x"
	if !hasOwnTarget(config, false) || !hasOwnTarget(config, true) {
		t.Error("with a target kubeconfig, the target must be another cluster")
	}
}

func TestCacheOptionsRestrictNamespaces(t *testing.T) {
	config := &configv1alpha1.ResourceManagerConfiguration{}
	config.SourceClientConnection.CacheResyncPeriod = &metav1.Duration{}
	if got := cacheOptions(config).DefaultNamespaces; got != nil {
		t.Errorf("got %v, want all namespaces", got)
	}
	config.SourceClientConnection.Namespaces = []string{"a", "b"}
	if got := cacheOptions(config).DefaultNamespaces; len(got) != 2 {
		t.Errorf("got %v, want both namespaces", got)
	}
}

func TestAddress(t *testing.T) {
	for want, server := range map[string]*configv1alpha1.Server{
		":8080": {Port: 8080}, "127.0.0.1:0": {BindAddress: "127.0.0.1"}, "[::1]:8081": {BindAddress: "::1", Port: 8081},
	} {
		if got := address(server); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
