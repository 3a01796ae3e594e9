package nodeagent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	componentnodeagent "github.com/trellis-k8s/trellis/pkg/component/nodeagent"
	"github.com/trellis-k8s/trellis/pkg/csrapprover"
	"github.com/trellis-k8s/trellis/pkg/webhooks/nodeagentauthorizer"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var (
	plane   *controlplane.ControlPlane
	options controlplane.Options
	// authorizer is the webhook that kube-apiserver asks.
	authorizer webhook
	// signer signs the certificates of node agents.
	signer authority

	prepared sync.Once
	admin    client.Client
	// stop ends the approver and the authorizer.
	stop = func() {}
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	directory, err := os.MkdirTemp("", "nodeagent-")
	if err == nil {
		defer os.RemoveAll(directory) //nolint:errcheck // a temporary directory
		err = signer.create(directory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := httptest.NewTLSServer(&authorizer)
	defer server.Close()
	configuration, err := authorizationConfiguration(directory, server)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	options = controlplane.Options{
		ControllerManager: true, ControllerManagerArgs: []string{"--cluster-signing-cert-file=" + signer.certificate, "--cluster-signing-key-file=" + signer.key},
		// Nil, because only one of the two flags may configure the authorizers.
		APIServerArgs: map[string][]string{
			"enable-bootstrap-token-auth": {"true"}, "authorization-config": {configuration}, "authorization-mode": nil,
		},
	}
	code := m.Run()
	stop() // kube-apiserver waits for watches when it stops
	if plane == nil {
		return code
	}
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// webhook serves the authorizer when it exists.
type webhook struct {
	mu   sync.Mutex
	next http.Handler
}

func (w *webhook) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	w.mu.Lock()
	next := w.next
	w.mu.Unlock()
	if next == nil {
		http.Error(writer, "no webhook answers", http.StatusServiceUnavailable)
		return
	}
	next.ServeHTTP(writer, request)
}

// authorizationConfiguration writes the configuration of kube-apiserver, as gardenlet does for Shoots with nodes.
func authorizationConfiguration(directory string, server *httptest.Server) (string, error) {
	kubeconfig, path := filepath.Join(directory, "webhook"), filepath.Join(directory, "authorization.yaml")
	text := fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- {type: RBAC, name: rbac}
- type: Webhook
  name: node-agent-authorizer
  webhook:
    timeout: 10s
    authorizedTTL: 1ns
    unauthorizedTTL: 1ns
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions: [{expression: "'gardener.cloud:node-agents' in request.groups"}]
`, kubeconfig)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "it", AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {}},
		Contexts: map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters: map[string]*clientcmdapi.Cluster{"it": {
			Server:                   server.URL + nodeagentauthorizer.Path,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}},
	}, kubeconfig)
}

// authority is a certificate authority in files.
type authority struct{ certificate, key string }

func (a *authority) create(directory string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	a.certificate, a.key = filepath.Join(directory, "ca.crt"), filepath.Join(directory, "ca.key")
	if err := os.WriteFile(a.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(a.key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600)
}

// prepare starts the control plane, its authorizer and its approver once, and returns a client of an administrator.
func prepare(t *testing.T) client.Client {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	prepared.Do(func() {
		var err error
		plane, err = controlplane.Start(context.Background(), options)
		kit.Must(t, err)
		config := plane.Config()
		c, err := client.New(config, client.Options{})
		kit.Must(t, err)
		// kube-apiserver trusts the signer of kube-controller-manager, too. It watches the file.
		trusted := filepath.Join(plane.Dir(), "certs", "client-cert-auth-ca.crt")
		own, err := os.ReadFile(trusted)
		kit.Must(t, err)
		added, err := os.ReadFile(signer.certificate)
		kit.Must(t, err)
		kit.Must(t, os.WriteFile(trusted, append(own, added...), 0o600))
		objects, err := componentnodeagent.Objects(nil)
		kit.Must(t, err)
		for _, object := range objects {
			kit.Must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), object)))
		}

		mgr, err := manager.New(config, kit.ManagerOptions(scheme.Scheme))
		kit.Must(t, err)
		target, err := cluster.New(config, func(options *cluster.Options) {
			options.Cache.ByObject = map[client.Object]cache.ByObject{&certificatesv1.CertificateSigningRequest{}: {Transform: csrapprover.Reduce}}
		})
		kit.Must(t, err)
		kit.Must(t, mgr.Add(target))
		approver := &csrapprover.Reconciler{
			Target: target.GetClient(), Direct: target.GetAPIReader(), Recorder: target.GetEventRecorder("csr-approver"),
			Metrics: csrapprover.NewMetrics(prometheus.NewRegistry()), Clock: clock.RealClock{}, ConcurrentSyncs: 1,
		}
		kit.Must(t, approver.AddToManager(mgr, target.GetCache()))
		authorizes, err := cluster.New(config)
		kit.Must(t, err)
		handler, err := nodeagentauthorizer.AddToManager(mgr, authorizes, nodeagentauthorizer.Options{
			AuthorizeWithSelectors: true, Clock: clock.RealClock{}, Log: logr.Discard(), Metrics: nodeagentauthorizer.NewMetrics(prometheus.NewRegistry()),
		})
		kit.Must(t, err)
		authorizer.mu.Lock()
		authorizer.next = handler
		authorizer.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		stop = func() {
			cancel()
			if err := <-ended; err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		admin = c
	})
	if admin == nil {
		t.Fatal("another test failed to prepare the control plane")
	}
	return admin
}
