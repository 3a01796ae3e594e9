// Package authorizer tests the authorizer of node agents behind a real API server.
package authorizer

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-k8s/trellis/pkg/webhooks/nodeagentauthorizer"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	prefix           = "gardener.cloud:node-agent:machine:"
	group            = "gardener.cloud:node-agents"
	machineNamespace = "machines"
)

// A mode is a webhook of its own, for users that are also in the group mode:<mode>. API servers do not select a webhook by path, so each
// mode has an authorizer in their configuration.
const (
	byMachine         = "machine"
	byMachineSelected = "machine-selected"
	byNode            = "node"
	byNodeBeta        = "node-beta"
	// open is also called for users that are not node agents.
	open = "open"
	// down does not answer. broken has no caches and cannot read either.
	down   = "down"
	broken = "broken"
)

var modes = map[string]string{byMachine: "v1", byMachineSelected: "v1", byNode: "v1", byNodeBeta: "v1beta1", open: "v1", down: "v1", broken: "v1"}

var (
	options controlplane.Options
	answers = &recorder{handlers: map[string]http.Handler{}}
	// background is the context of everything that runs longer than one test, until stop is called.
	background, stop = context.WithCancel(context.Background())
	// ended is closed when the manager of the webhooks has stopped. It is nil if the manager was not started.
	ended chan struct{}
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer stop()
	dir, err := os.MkdirTemp("", "trellis-authorizer-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server := httptest.NewTLSServer(answers)
	defer server.Close()
	// Nil, because only one of the two flags may configure the authorizers.
	options.APIServerArgs = map[string][]string{"authorization-config": {authorizationConfiguration(dir, server)}, "authorization-mode": nil}
	code := m.Run()
	stop()
	if common == nil {
		return code
	}
	if ended != nil {
		<-ended // kube-apiserver waits for the watches of its clients when it stops
	}
	if err := common.controlPlane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// authorizationConfiguration writes the configuration of kube-apiserver: for each mode a webhook as gardener configures it, then RBAC.
func authorizationConfiguration(dir string, server *httptest.Server) string {
	var text strings.Builder
	text.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n")
	for mode, version := range modes {
		config := clientcmdapi.NewConfig()
		config.Clusters["it"] = &clientcmdapi.Cluster{
			Server:                   server.URL + "/" + mode + nodeagentauthorizer.Path,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}
		config.AuthInfos["it"] = &clientcmdapi.AuthInfo{}
		config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
		config.CurrentContext = "it"
		kubeconfig := filepath.Join(dir, mode)
		if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
			panic(err)
		}
		conditions := fmt.Sprintf(`[{expression: "'mode:%s' in request.groups"}`, mode)
		if mode != open {
			conditions += fmt.Sprintf(`, {expression: "'%s' in request.groups"}`, group)
		}
		fmt.Fprintf(&text, `- type: Webhook
  name: %s
  webhook:
    timeout: 10s
    authorizedTTL: 1ns
    unauthorizedTTL: 1ns
    subjectAccessReviewVersion: %s
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions: %s]
`, mode, version, kubeconfig, conditions)
	}
	text.WriteString("- type: RBAC\n  name: rbac\n")
	path := filepath.Join(dir, "authorization.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		panic(err)
	}
	return path
}

// recorder passes reviews to the webhook of their mode and records the answers by user.
type recorder struct {
	mu       sync.Mutex
	handlers map[string]http.Handler
	statuses map[string][]authorizationv1.SubjectAccessReviewStatus
	versions map[string]string
}

func (r *recorder) serve(mode string, handler http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers[mode] = handler
}

// ServeHTTP answers a review.
func (r *recorder) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	mode := strings.TrimSuffix(strings.TrimPrefix(request.URL.Path, "/"), nodeagentauthorizer.Path)
	r.mu.Lock()
	handler := r.handlers[mode]
	r.mu.Unlock()
	if handler == nil {
		http.Error(writer, "no webhook answers", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(strings.NewReader(string(body)))
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	var asked, answered authorizationv1.SubjectAccessReview
	if json.Unmarshal(body, &asked) == nil && json.Unmarshal(response.Body.Bytes(), &answered) == nil {
		r.note(mode+" "+asked.Spec.User, &answered)
	}
	writer.Header().Set("Content-Type", response.Header().Get("Content-Type"))
	writer.WriteHeader(response.Code)
	_, _ = writer.Write(response.Body.Bytes())
}

func (r *recorder) note(key string, answer *authorizationv1.SubjectAccessReview) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.statuses == nil {
		r.statuses, r.versions = map[string][]authorizationv1.SubjectAccessReviewStatus{}, map[string]string{}
	}
	r.statuses[key] = append(r.statuses[key], answer.Status)
	r.versions[key] = answer.APIVersion
}

// take returns the answers for a user since the last call.
func (r *recorder) take(mode, user string) []authorizationv1.SubjectAccessReviewStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer delete(r.statuses, mode+" "+user)
	return r.statuses[mode+" "+user]
}

func (r *recorder) version(mode, user string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[mode+" "+user]
}

// fixture is the control plane with the objects that the tests share.
type fixture struct {
	controlPlane *controlplane.ControlPlane
	config       *rest.Config
	client       client.Client
	// requests are those of the authorizers.
	requests *kit.Requests
	registry *prometheus.Registry
	// populated reports whether all objects could be created.
	populated bool
}

var (
	fixtureOnce sync.Once
	common      *fixture
)

// newFixture returns the single fixture of all tests.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	fixtureOnce.Do(func() {
		plane, err := controlplane.Start(background, options)
		kit.Must(t, err)
		f := &fixture{controlPlane: plane, config: plane.Config(), requests: &kit.Requests{}, registry: prometheus.NewRegistry()}
		common = f
		f.client, err = client.New(f.config, client.Options{})
		kit.Must(t, err)
		f.serve(t)
		f.refuseWithoutMachines(t)
		f.populate(t)
		f.populated = true
	})
	if common == nil || !common.populated {
		t.Fatal("another test failed to create the fixture")
	}
	return common
}

// serve starts the webhooks of all modes that answer.
func (f *fixture) serve(t *testing.T) {
	t.Helper()
	config := rest.CopyConfig(f.config)
	config.Wrap(f.requests.Wrap)
	mgr, err := manager.New(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard()})
	kit.Must(t, err)
	target, err := cluster.New(config)
	kit.Must(t, err)
	metrics := nodeagentauthorizer.NewMetrics(f.registry)
	for mode, options := range map[string]nodeagentauthorizer.Options{
		byMachine:         {MachineNamespace: ptr.To(machineNamespace)},
		byMachineSelected: {MachineNamespace: ptr.To(machineNamespace), AuthorizeWithSelectors: true},
		byNode:            {AuthorizeWithSelectors: true},
		byNodeBeta:        {},
		open:              {MachineNamespace: ptr.To(machineNamespace)},
	} {
		options.Clock, options.Log, options.Metrics = clock.RealClock{}, logr.Discard(), metrics
		handler, err := nodeagentauthorizer.AddToManager(mgr, target, options)
		kit.Must(t, err)
		answers.serve(mode, handler)
	}
	answers.serve(broken, brokenAuthorizer(t, f.config))
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Start(background); err != nil {
			panic(err)
		}
	}()
}

// brokenAuthorizer returns an authorizer that can read nothing, because no server listens at the address of its API server.
func brokenAuthorizer(t *testing.T, config *rest.Config) http.Handler {
	t.Helper()
	port, err := controlplane.FreePort()
	kit.Must(t, err)
	config = rest.CopyConfig(config)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	nowhere, err := cluster.New(config)
	kit.Must(t, err)
	unreadable := nodeagentauthorizer.Cluster{Cache: nowhere.GetCache(), Live: nowhere.GetAPIReader()}
	return nodeagentauthorizer.NewHandler(nodeagentauthorizer.Options{
		Source: unreadable, Target: unreadable, MachineNamespace: ptr.To(machineNamespace), Clock: clock.RealClock{}, Log: logr.Discard(),
	})
}
