package admissioncontroller

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/cmd/admission-controller/app"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
)

var shared garden.Shared

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	directory, err := os.MkdirTemp("", "admission-controller-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	port, err := controlplane.FreePort()
	if err != nil {
		panic(err)
	}
	webhookPort = port
	shared.Options.ControlPlane.AuditLog = filepath.Join(directory, "audit.log")
	shared.Options.ControlPlane.APIServerArgs = map[string][]string{
		"authorization-mode": nil, "authorization-config": {writeAuthorization(directory, port)},
	}
	// The API server of the garden asks kube-apiserver, and must not remember the answers for long.
	shared.Options.APIServerArgs = []string{
		"--authorization-webhook-cache-authorized-ttl=100ms", "--authorization-webhook-cache-unauthorized-ttl=100ms",
	}
	return shared.Run(m)
}

// webhookPort is where the program serves webhooks. kube-apiserver gets it when it starts.
var webhookPort int

// writeAuthorization writes the configuration of docs/admission-controller.md, and returns its path. The certificate of the program does not
// exist yet, so that it is not verified.
func writeAuthorization(directory string, port int) string {
	files := map[string]string{
		"seed-authorizer.kubeconfig": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://localhost:%d/webhooks/auth/seed", insecure-skip-tls-verify: true}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`, port),
		"authorization.yaml": fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: RBAC, name: rbac}
- type: Webhook
  name: seed-authorizer
  webhook:
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    timeout: 10s
    authorizedTTL: 1ns
    unauthorizedTTL: 1ns
    failurePolicy: Deny
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    matchConditions:
    - expression: "'gardener.cloud:system:seeds' in request.groups || request.groups.exists(g, g.startsWith('system:serviceaccounts:seed-'))"
`, filepath.Join(directory, "seed-authorizer.kubeconfig")),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			panic(err)
		}
	}
	return filepath.Join(directory, "authorization.yaml")
}

// fixture is a garden with an admission controller, which has only the permissions that its chart grants.
type fixture struct {
	*testing.T
	garden *garden.Garden
	client client.Client
	// port is where the program serves webhooks.
	port int
	// config is the file with the configuration of the program, health the port of its probes.
	config  string
	health  int
	process *controlplane.Process
}

// running is the fixture of the first test. The others use its program.
var running *fixture

const limits = `
  resourceAdmissionConfiguration:
    limits:
    - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], size: 2k}
    - {apiGroups: [core.gardener.cloud], apiVersions: ["*"], resources: [exposureclasses], count: 1}
    unrestrictedSubjects: [{kind: Group, name: "gardener.cloud:system:seeds"}]
`

// newFixture starts the program for the first test. Tests must not run at the same time.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	if running != nil {
		f := *running
		f.T = t
		return &f
	}
	f := &fixture{T: t, garden: shared.Get(t), port: webhookPort}
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, served.AddToScheme(scheme))
	var err error
	f.client, err = client.New(f.garden.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
	values := map[string]any{
		"webhooks": map[string]any{"url": fmt.Sprintf("https://localhost:%d", f.port)},
		"config": map[string]any{"server": map[string]any{"resourceAdmissionConfiguration": map[string]any{"limits": []any{
			map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "size": "2k"},
			map[string]any{"apiGroups": []any{"core.gardener.cloud"}, "apiVersions": []any{"*"}, "resources": []any{"exposureclasses"}, "count": 1},
		}}}},
	}
	charts.Apply(t, f.client, "admission-controller", values, charts.IsRight)
	f.configure()
	f.start()
	charts.Apply(t, f.client, "admission-controller", values, isWebhookConfiguration)
	f.trusted()
	running = f
	return f
}

func isWebhookConfiguration(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetKind(), "WebhookConfiguration")
}

// configure writes the configuration of the program, with the token of its ServiceAccount.
func (f *fixture) configure() {
	f.Helper()
	directory, err := os.MkdirTemp(f.garden.Dir(), "admission-controller-")
	kit.Must(f, err)
	token, err := os.ReadFile(kit.AccountKubeconfig(f, f.garden.Config(), f.client, "garden", "gardener-admission-controller"))
	kit.Must(f, err)
	kubeconfig := filepath.Join(directory, "kubeconfig")
	kit.Must(f, os.WriteFile(kubeconfig, token, 0o600))
	f.config, f.health = filepath.Join(directory, "config.yaml"), kit.FreePort(f)
	kit.Must(f, os.WriteFile(f.config, fmt.Appendf(nil, `apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1
kind: AdmissionControllerConfiguration
gardenClientConnection: {kubeconfig: %s}
logFormat: text
server:
  webhooks: {bindAddress: 127.0.0.1, port: %d, tls: {selfManaged: {dnsNames: [localhost]}}}
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}%s`, kubeconfig, f.port, f.health, kit.FreePort(f), limits), 0o600))
}

// start starts the program, and waits until it is ready.
func (f *fixture) start() {
	f.Helper()
	program, err := controlplane.BuildProgram[app.Program]()
	kit.Must(f, err)
	f.process, err = f.garden.StartProcess("admission-controller", program, "--config", f.config)
	kit.Must(f, err)
	f.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(f.garden.Dir(), "admission-controller.log")); err == nil && f.Failed() {
			f.Logf("log of the admission controller:\n%s", log)
		}
	})
	kit.EventuallyTrue(f, "the admission controller is ready", func() bool {
		request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", f.health), http.NoBody)
		kit.Must(f, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		kit.Must(f, response.Body.Close())
		return response.StatusCode == http.StatusOK
	})
}

// trusted waits until the API server calls the webhooks and trusts their certificate.
func (f *fixture) trusted() {
	f.Helper()
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-probe", Labels: project("probe")}})
	kit.Eventually(f, "the API server trusts the webhooks", func() string {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-probe", Name: "probe"}, Data: map[string][]byte{"kubeconfig": []byte("{")}}
		err := f.client.Create(f.Context(), secret, client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "data.kubeconfig") {
			return ""
		}
		return fmt.Sprint(err)
	})
}

func project(name string) map[string]string {
	return map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	kit.Must(f, f.client.Create(f.Context(), object))
}

// as returns a client of a user.
func (f *fixture) as(user string, groups ...string) client.Client {
	f.Helper()
	config := f.garden.Config()
	config.Impersonate.UserName, config.Impersonate.Groups = user, slices.Concat(groups, []string{"system:masters"})
	impersonating, err := client.New(config, client.Options{Scheme: f.client.Scheme()})
	kit.Must(f, err)
	return impersonating
}

// refused checks that a request is refused with a message that contains a text; an empty text means that it is admitted.
func (f *fixture) refused(request, text string, err error) {
	f.Helper()
	switch {
	case text == "" && err != nil:
		f.Errorf("%s is refused: %v", request, err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		f.Errorf("%s: got %v, want an error with %q", request, err, text)
	case err != nil:
		f.Logf("%s: %v", request, err)
	}
}
