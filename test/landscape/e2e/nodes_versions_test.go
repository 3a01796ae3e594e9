package e2e

import (
	"fmt"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// versions updates the Shoot from an older minor version of Kubernetes to the current one. Control plane and nodes are replaced, and neither a
// request to the API server nor one to a user's program fails.
func (n *shootNodes) versions() {
	n.t.Helper()
	if *older == "" {
		n.t.Skip("needs -landscape.older v1.36.0, after make controlplane-older VERSION=v1.36.0")
	}
	current, err := base.KubernetesVersion()
	must(n.t, err)
	must(n.t, n.haveVersion(*older))
	customers := n.startCustomers(n.openShop())
	users := append(n.startUsers(n.config), customers)
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	began := time.Now()
	n.change(func(spec *corev1beta1.ShootSpec) { spec.Kubernetes.Version = strings.TrimPrefix(current, "v") })
	n.within(rotationTimeout, "the nodes have the version "+current, func() error { return n.haveVersion(current) })
	n.t.Logf("Control plane and nodes had the version %s after %s", current, time.Since(began).Round(time.Second))
	n.replaced(old)
	n.noneFailed(users, "the update")
	for _, u := range users {
		u.stop()
	}
}

// haveVersion returns an error unless there are two nodes, which have a version of Kubernetes.
func (n *shootNodes) haveVersion(version string) error {
	nodes := n.nodeList("")
	if len(nodes) != 2 {
		return fmt.Errorf("there are %d nodes", len(nodes))
	}
	for _, node := range nodes {
		if is := node.Status.NodeInfo.KubeletVersion; is != version {
			return fmt.Errorf("%s has %s", node.Name, is)
		}
	}
	return nil
}
