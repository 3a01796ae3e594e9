package kit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// stopPatience is how long a resource-manager may take to stop.
const stopPatience = time.Minute

// Binary builds the resource-manager once for the tests of a package and returns its path. Package test/kit/resourcemanager
// sets it, and only test packages that run the resource-manager import that: not all that use this package depend on it.
var Binary = func() (string, error) {
	return "", errors.New("this test package runs the resource-manager, but does not import test/kit/resourcemanager: add the import, " +
		"so that go test does not answer from its cache when the resource-manager has changed")
}

// Process is a running resource-manager.
type Process struct {
	testing.TB
	Command *exec.Cmd
	// Written is its log.
	Written *Output
	// Health and Metrics are the addresses, host and port, of its servers. WebhookPort is the port of the webhook server.
	Health, Metrics string
	WebhookPort     int
	// Certificates is the directory of the webhook certificate, which Authority has issued.
	Certificates string
	Authority    *Authority
}

// Command returns a resource-manager that is not started yet, and its future output. It is killed when the test ends.
func Command(tb testing.TB, config string) (*exec.Cmd, *Output) {
	tb.Helper()
	path, err := Binary()
	Must(tb, err)
	file := filepath.Join(tb.TempDir(), "config.yaml")
	Must(tb, os.WriteFile(file, []byte(config), 0o600))
	command := exec.CommandContext(tb.Context(), path, "--config", file)
	log := &Output{}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if controlplane.Covered() {
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
		command.WaitDelay = stopPatience
	}
	return command, log
}

// StartManager starts a resource-manager with a control plane as its source and target, restricted to namespaces (all if
// there are none), and waits until it is ready. extra are additional lines of its configuration, for example
// "controllers: {…}". Leader election is disabled unless extra enables it. The process is killed when the test ends, and
// its log is printed if the test failed.
func StartManager(tb testing.TB, kubeconfig []byte, namespaces []string, extra string) *Process {
	tb.Helper()
	if !strings.Contains(extra, "leaderElection:") {
		extra = "leaderElection: {leaderElect: false}\n" + extra
	}
	connection := "{kubeconfig: $KUBECONFIG, namespaces: [" + strings.Join(namespaces, ", ") + "], qps: -1}"
	return StartManagerWith(tb, kubeconfig, `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: `+connection+`
targetClientConnection: `+connection+`
server:
  healthProbes: {bindAddress: 127.0.0.1, port: $HEALTH_PORT}
  metrics: {bindAddress: 127.0.0.1, port: $METRICS_PORT}
  webhooks: {bindAddress: 127.0.0.1, port: $WEBHOOK_PORT, tls: {serverCertDir: $CERTIFICATES}}
`+extra)
}

// StartManagerWith is like StartManager, but with a complete configuration, in which $KUBECONFIG, $HEALTH_PORT,
// $METRICS_PORT, $WEBHOOK_PORT and $CERTIFICATES are replaced. tune modifies the command before it is started.
func StartManagerWith(tb testing.TB, kubeconfig []byte, config string, tune ...func(*exec.Cmd)) *Process {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	Must(tb, os.WriteFile(file, kubeconfig, 0o600))
	health, metrics := FreePort(tb), FreePort(tb)
	p := &Process{
		TB: tb, Health: local(health), Metrics: local(metrics), WebhookPort: FreePort(tb),
		Certificates: tb.TempDir(), Authority: NewAuthority(tb),
	}
	p.Authority.Issue(tb, p.Certificates, time.Now().Add(time.Hour))
	config = strings.NewReplacer("$KUBECONFIG", file, "$HEALTH_PORT", strconv.Itoa(health), "$METRICS_PORT", strconv.Itoa(metrics),
		"$WEBHOOK_PORT", strconv.Itoa(p.WebhookPort), "$CERTIFICATES", p.Certificates).Replace(config)
	if *withRights {
		config = restrict(tb, config, file)
	}
	p.Command, p.Written = Command(tb, config)
	for _, change := range tune {
		change(p.Command)
	}
	Must(tb, p.Command.Start())
	tb.Cleanup(func() {
		_, _ = p.Command.Process.Wait()
		if tb.Failed() {
			tb.Logf("log of the resource-manager:\n%s", p.Written)
		}
	})
	EventuallyTrue(tb, "the resource-manager is ready", func() bool {
		status, _ := p.Get(p.Health, "/readyz")
		return status == http.StatusOK
	})
	return p
}

// FreePort returns a free port.
func FreePort(tb testing.TB) int {
	tb.Helper()
	port, err := controlplane.FreePort()
	Must(tb, err)
	return port
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Get sends a request to one of the servers. The status is 0 if it does not respond.
func (p *Process) Get(address, path string) (status int, body string) {
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	Must(p, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(text)
}

// ReadAll reads the body of a response and closes it.
func ReadAll(tb testing.TB, body io.ReadCloser) string {
	tb.Helper()
	text, err := io.ReadAll(body)
	Must(tb, err)
	Must(tb, body.Close())
	return string(text)
}

// Stop stops the process and checks that it exits without an error.
func (p *Process) Stop() {
	p.Helper()
	Must(p, p.Command.Process.Signal(syscall.SIGTERM))
	done := make(chan error, 1)
	go func() { done <- p.Command.Wait() }()
	select {
	case err := <-done:
		Must(p, err)
	case <-time.After(stopPatience):
		p.Fatal("the resource-manager did not stop")
	}
}

// Output is the output of a process. It is safe for concurrent use.
type Output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write appends to the output.
func (o *Output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(data)
}

// String returns the whole output.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}
