package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// withoutInotify runs a command in a separate user namespace without any instances of inotify, as on a node where
// others have used up fs.inotify.max_user_instances. Other processes are not affected.
func withoutInotify(command *exec.Cmd) {
	const limit = `echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"`
	command.Args = append([]string{"sh", "-c", limit, "sh", command.Path}, command.Args[1:]...)
	command.Path = "/bin/sh"
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}

// TestWithoutInotify: if inotify cannot be used, the resource-manager still starts, serves webhooks and the page, and
// serves renewed certificates.
func TestWithoutInotify(t *testing.T) {
	t.Parallel()
	probe := exec.Command("true")
	withoutInotify(probe)
	if output, err := probe.CombinedOutput(); err != nil {
		t.Skipf("needs a user namespace, which the system denies: %v: %s", err, output)
	}
	f := newFixture(t)
	port := kit.FreePort(t)
	p := kit.StartManagerWith(t, shared.Get(f).Kubeconfig(), fmt.Sprintf(`apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: $KUBECONFIG, namespaces: [%[1]s], qps: -1}
targetClientConnection: {kubeconfig: $KUBECONFIG, namespaces: [%[1]s], qps: -1}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: $HEALTH_PORT}
  metrics: {bindAddress: 127.0.0.1, port: $METRICS_PORT}
  webhooks: {bindAddress: 127.0.0.1, port: $WEBHOOK_PORT, tls: {serverCertDir: $CERTIFICATES}}
  ui: {bindAddress: 127.0.0.1, port: %[2]d, tls: {serverCertDir: $CERTIFICATES}}
webhooks: {projectedTokenMount: {enabled: true}}
controllers: {managedResource: {managedByLabelValue: %[1]s}}
leaderElection: {leaderElect: false}
`, f.namespace, port), withoutInotify)
	f.manage("set", f.configMap("one", "1"))
	f.eventuallySucceeded("set")
	renewed := p.Authority.Issue(t, p.Certificates, time.Now().Add(2*time.Hour))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(p.Authority.Bundle())
	for what, port := range map[string]int{"webhooks": p.WebhookPort, "the page": port} {
		kit.Eventually(t, what+": the renewed certificate is served", func() string {
			conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{RootCAs: trusted})
			if err != nil {
				return err.Error()
			}
			defer conn.Close()
			if serial := conn.ConnectionState().PeerCertificates[0].SerialNumber; serial.Cmp(renewed) != 0 {
				return "the serial number is " + serial.String()
			}
			return ""
		})
	}
	if log := p.Written.String(); strings.Contains(log, "inotify") {
		t.Errorf("the log is: %s", log)
	}
	p.Stop()
}
