package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// explainTimeout limits each command that collects details about a failure.
const explainTimeout = 20 * time.Second

// explainMachines logs possible reasons why machines did not join a cluster: their Pods, the logs of their services, and
// the CertificateSigningRequests of their kubelets.
func (c *cluster) explainMachines(inner client.Client, names ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, explainTimeout)
	defer cancel()
	c.t.Logf("Nodes and CertificateSigningRequests of the cluster of the machines:\n%s", joining(ctx, inner))
	c.show("get", "pods", "--output=wide")
	c.show("get", "events", "--sort-by=.lastTimestamp")
	for _, name := range names {
		c.explainMachine(name, "machine")
	}
}

// explainMachine logs the state of a machine, which is a Pod with a container.
func (c *cluster) explainMachine(pod, container string) {
	c.t.Helper()
	c.show("describe", "pod", pod)
	c.show("logs", pod, "--container="+container, "--tail=60")
	run := func(command string) { c.show("exec", pod, "--container="+container, "--", "/bin/sh", "-c", command) }
	run("systemctl list-units --failed --no-legend; systemctl list-jobs --no-legend; systemctl status --no-pager --lines=0 containerd kubelet run-userdata")
	run("journalctl --no-pager --unit=containerd --unit=machine-configure --unit=run-userdata | grep -v 'loading plugin' | tail -n 40")
	run("journalctl --no-pager --lines=60 --unit=kubelet")
}

// show logs the output of kubectl.
func (c *cluster) show(arguments ...string) {
	c.t.Helper()
	limited := *c
	ctx, cancel := context.WithTimeout(c.ctx, explainTimeout)
	defer cancel()
	limited.ctx = ctx
	output, err := limited.kubectlCommand(arguments...).CombinedOutput()
	failure := ""
	if err != nil {
		failure = fmt.Sprintf(" (%v)", err)
	}
	c.t.Logf("kubectl %s%s\n%s", strings.Join(arguments, " "), failure, output)
}

// joining describes the Nodes of a cluster, and the pending CertificateSigningRequests.
func joining(ctx context.Context, inner client.Client) string {
	var text strings.Builder
	nodes, requests := &corev1.NodeList{}, &certificatesv1.CertificateSigningRequestList{}
	if err := inner.List(ctx, nodes); err != nil {
		return err.Error()
	}
	for _, node := range nodes.Items {
		fmt.Fprintf(&text, "Node %s, created %s\n", node.Name, node.CreationTimestamp)
	}
	if err := inner.List(ctx, requests); err != nil {
		return text.String() + err.Error()
	}
	for _, request := range requests.Items {
		fmt.Fprintf(&text, "CertificateSigningRequest %s of %s, created %s, signed: %t:", request.Name, request.Spec.Username, request.CreationTimestamp, len(request.Status.Certificate) > 0)
		for _, condition := range request.Status.Conditions {
			fmt.Fprintf(&text, " %s (%s)", condition.Type, condition.Reason)
		}
		text.WriteString("\n")
	}
	return text.String()
}
