package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
)

// tunnelServersReplaced gives the tunnel a second server, and replaces both, one after the other, while users send requests to kubelets through them. No
// request fails. Then the tunnel has one server again.
func (n *shootNodes) tunnelServersReplaced() {
	n.t.Helper()
	n.setServers(`"true"`, 2)
	node := n.nodeList("")[0].Name
	through, err := kubernetes.NewForConfig(n.config)
	must(n.t, err)
	users := []*user{n.startRequests("users of a kubelet", func(ctx context.Context, _ int) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return true, through.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", node, "proxy", "healthz").Do(ctx).Error()
	})}
	n.within(nodesTimeout, "requests succeed", func() error {
		if users[0].successes() < 10 {
			return errors.New("fewer than ten have succeeded one after the other")
		}
		return nil
	})
	users[0].take()
	began := time.Now()
	for server := range int32(2) {
		plane := n.plane()
		plane.kubectl("delete", "pod", vpnseedserver.Service(server))
		n.serversAreReady(2)
	}
	n.t.Logf("both servers were replaced in %s", time.Since(began).Round(time.Second))
	n.noneFailed(users, "the replacement of the servers")
	users[0].stop()
	n.setServers("null", 1)
}

// plane is the namespace of the control plane in the seed.
func (n *shootNodes) plane() *cluster {
	plane := *n.cluster
	plane.namespace = n.shoot.Status.TechnicalID
	return &plane
}

// setServers sets the annotation for a highly available tunnel to a value in JSON, and waits until the tunnel has a number of servers.
func (n *shootNodes) setServers(value string, count int) {
	n.t.Helper()
	must(n.t, n.fleet.Patch(n.ctx, n.shoot, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s,%q:%q}}}`,
		constants.AnnotationControlPlaneHighAvailabilityVPN, value, constants.AnnotationGardenerOperation, constants.OperationReconcile))))
	n.serversAreReady(count)
	n.settled("two nodes are ready", 2)
}

// serversAreReady waits until the tunnel has a number of servers, and each one has agents.
func (n *shootNodes) serversAreReady(count int) {
	n.t.Helper()
	n.within(nodesTimeout, fmt.Sprintf("%d servers of the tunnel are ready", count), func() error {
		text, err := n.plane().tryKubectl("get", "statefulset", vpnseedserver.Name, "--output",
			"jsonpath={.spec.replicas} {.status.replicas} {.status.readyReplicas} {.status.updatedReplicas}")
		if want := strings.TrimSpace(strings.Repeat(fmt.Sprint(count)+" ", 4)); err == nil && text != want {
			err = fmt.Errorf("the replicas are %q, not %q", text, want)
		}
		return err
	})
}
