// Package gardenlet tests gardenlet's program with a garden and a seed, both real control planes.
package gardenlet

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/cmd/gardenlet/app"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/certificatesigningrequest"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/gardenletrights"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/seed"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

const (
	seedName = "one"
	// tokenID and tokenSecret are the parts of the bootstrap token.
	tokenID, tokenSecret = "abcdef", "0123456789abcdef"
	gardenUser           = "gardener.cloud:system:seed:" + seedName
	seedUser             = "system:serviceaccount:garden:gardenlet"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// binary builds gardenlet once and returns its path.
var binary = sync.OnceValues(controlplane.BuildProgram[app.Program])

// fixture is a garden and a seed. gardenlet has only the permissions that its chart grants.
type fixture struct {
	*testing.T
	gardenPlane            *garden.Garden
	seedPlane              *controlplane.ControlPlane
	garden, seed           client.WithWatch
	gardenAudit, seedAudit string
	// config is the path of the configuration file. health is the address of the health checks.
	config, health string
	process        *controlplane.Process
	seedKubeconfig string
	directory      string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs control planes, which -short excludes")
	}
	dir := t.TempDir()
	f := &fixture{T: t, gardenAudit: filepath.Join(dir, "garden.log"), seedAudit: filepath.Join(dir, "seed.log"), directory: dir}
	authority, err := newAuthority(dir)
	kit.Must(t, err)
	server, err := garden.Binary()
	kit.Must(t, err)
	f.gardenPlane, err = garden.Start(t.Context(), garden.Options{
		APIServer: server,
		ControlPlane: controlplane.Options{
			ControllerManager: true, ControllerManagerArgs: authority.args(), AuditLog: f.gardenAudit,
			APIServerArgs: map[string][]string{"enable-bootstrap-token-auth": {"true"}},
		},
	})
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, f.gardenPlane.KillAPIServer()) // a graceful stop would wait for watches to end
		kit.Must(t, f.gardenPlane.Stop())
	})
	kit.Must(t, authority.addTo(filepath.Join(f.gardenPlane.Dir(), "certs", "client-cert-auth-ca.crt")))
	f.seedPlane, err = controlplane.Start(t.Context(), controlplane.Options{AuditLog: f.seedAudit})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, f.seedPlane.Stop()) })
	f.garden, f.seed = newClient(t, f.gardenPlane.Config(), served.AddToScheme), newClient(t, f.seedPlane.Config(), resourcesv1alpha1.AddToScheme)
	t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(f.seedPlane.Dir(), "gardenlet.log")); err == nil && t.Failed() {
			t.Logf("log of gardenlet:\n%s", log)
		}
	})
	kit.DefineManagedResources(t, f.seedPlane.Config())
	f.prepareSeed()
	f.prepareGarden()
	f.runs(gardenletrights.Controller())
	f.configure()
	return f
}

func newClient(t *testing.T, config *rest.Config, kinds func(*runtime.Scheme) error) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, apiextensionsv1.AddToScheme(scheme))
	kit.Must(t, kinds(scheme))
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	kit.Must(t, err)
	return c
}

func gardenValues() map[string]any {
	return map[string]any{"mode": "garden", "seeds": []any{map[string]any{"name": seedName, "bootstrapTokenID": tokenID}}}
}

// prepareGarden creates the objects that the garden has before its first Seed: permissions and a bootstrap token.
func (f *fixture) prepareGarden() {
	f.Helper()
	f.namespace(f.garden, "garden", nil)
	f.namespace(f.garden, "gardener-system-public", nil)
	charts.Apply(f, f.garden, "gardenlet", gardenValues(), func(*unstructured.Unstructured) bool { return true })
	kit.Must(f, f.garden.Create(f.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + tokenID}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": tokenID, "token-secret": tokenSecret, "usage-bootstrap-authentication": "true", "description": "for Seed " + seedName},
	}))
	config := f.gardenPlane.Config()
	f.secret("gardenlet-kubeconfig-bootstrap", nil, map[string]string{"kubeconfig": f.kubeconfig(config, tokenID+"."+tokenSecret)})
}

// prepareSeed creates the objects that the seed has before gardenlet starts: permissions.
func (f *fixture) prepareSeed() {
	f.Helper()
	f.namespace(f.seed, "garden", nil)
	charts.Apply(f, f.seed, "gardenlet", map[string]any{}, charts.IsRight)
	f.authenticate()
}

// admit runs the controller of the garden's controller-manager that creates the namespaces of Seeds.
func (f *fixture) admit() {
	f.Helper()
	f.runs(seed.Controller())
}

func (f *fixture) namespace(in client.Client, name string, labels map[string]string) *corev1.Namespace {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	kit.Must(f, in.Create(f.Context(), namespace))
	return namespace
}

// secret creates a Secret in the namespace garden of the seed.
func (f *fixture) secret(name string, change func(*corev1.Secret), content map[string]string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, StringData: content}
	if change != nil {
		change(secret)
	}
	kit.Must(f, f.seed.Create(f.Context(), secret))
	return secret
}

// kubeconfig returns a kubeconfig with a token.
func (f *fixture) kubeconfig(config *rest.Config, token string) string {
	f.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.CurrentContext = "test"
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	if !strings.Contains(config.Host, "://") {
		kubeconfig.Clusters["test"].Server = "https://" + config.Host
	}
	kubeconfig.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: token}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	content, err := clientcmd.Write(*kubeconfig)
	kit.Must(f, err)
	return string(content)
}

// approve runs the controller of the garden's controller-manager that approves the certificates of gardenlets.
func (f *fixture) approve() {
	f.Helper()
	f.runs(certificatesigningrequest.Controller())
}

// runs runs a controller of the garden's controller-manager until the test ends.
func (f *fixture) runs(controller controller.Controller) {
	f.Helper()
	fleet.RunControllers(f, f.gardenPlane.Config(), kit.ManagerOptions(f.garden.Scheme()), controller)
}

const configuration = `apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection:
  bootstrapKubeconfig: {name: gardenlet-kubeconfig-bootstrap, namespace: garden}
  kubeconfigSecret: {name: gardenlet-kubeconfig, namespace: garden}
  kubeconfigValidity: {validity: 1h}
seedClientConnection: {kubeconfig: $KUBECONFIG}
controllers:
  seed: {syncPeriod: 1s, leaseResyncSeconds: 1, leaseResyncMissThreshold: 60}
logFormat: text
server:
  healthProbes: {bindAddress: 127.0.0.1, port: $HEALTH_PORT}
  metrics: {bindAddress: 127.0.0.1, port: $METRICS_PORT}
seedConfig:
  metadata: {name: one, labels: {some: label}}
  spec:
    provider: {type: local, region: local}
    networks: {pods: 100.96.0.0/11, services: 10.0.0.0/24}
    ingress: {domain: ingress.one.example.org, controller: {kind: nginx}}
    dns:
      provider: {type: local, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: identity, namespace: garden}}
      internal: {type: local, domain: internal.example.org, credentialsRef: {apiVersion: v1, kind: Secret, name: internal, namespace: garden}}
`

// configure writes the configuration file.
func (f *fixture) configure() {
	f.Helper()
	health, metrics := kit.FreePort(f), kit.FreePort(f)
	f.health = fmt.Sprintf("http://127.0.0.1:%d", health)
	content := strings.NewReplacer("$KUBECONFIG", f.seedKubeconfig, "$HEALTH_PORT", fmt.Sprint(health), "$METRICS_PORT", fmt.Sprint(metrics)).
		Replace(configuration)
	f.config = filepath.Join(f.directory, fmt.Sprintf("gardenlet-%d.yaml", health))
	kit.Must(f, os.WriteFile(f.config, []byte(content), 0o600))
}

// start starts gardenlet.
func (f *fixture) start() {
	f.Helper()
	path, err := binary()
	kit.Must(f, err)
	f.process, err = f.seedPlane.StartProcess("gardenlet", path, "--config", f.config)
	kit.Must(f, err)
}

// authenticate writes the kubeconfig for the seed with a new token, and returns the name of the token in audit logs.
func (f *fixture) authenticate() (credential string) {
	f.Helper()
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet"}}
	kit.Must(f, f.seed.SubResource("token").Create(f.Context(), account, token))
	f.seedKubeconfig = filepath.Join(f.directory, fmt.Sprintf("seed-%d.kubeconfig", kit.FreePort(f)))
	kit.Must(f, os.WriteFile(f.seedKubeconfig, []byte(f.kubeconfig(f.seedPlane.Config(), token.Status.Token)), 0o600))
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
	kit.Must(f, f.seed.Create(f.Context(), review))
	return strings.Join(review.Status.User.Extra[credentialID], "")
}

// credentialID is the extra attribute of a user that names the credential of a request.
const credentialID = "authentication.kubernetes.io/credential-id"

// status returns the status of one of gardenlet's health checks. It is 0 if gardenlet does not respond.
func (f *fixture) status(path string) int {
	ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.health+path, http.NoBody)
	kit.Must(f, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	kit.Must(f, response.Body.Close())
	return response.StatusCode
}
