// Package lease renews the Lease that says that the node agent works. It is the only request of a node agent at rest.
package lease

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
)

const (
	// period is the time between two renewals, and duration how long a renewal holds, in seconds (Gardener).
	period   = 10 * time.Second
	duration = 40

	namePrefix = "gardener-node-agent-"
)

// Controller renews the Lease of a Node.
type Controller struct {
	Client *cluster.Client
	Node   *cluster.Watched[corev1.Node]
	Clock  clock.PassiveClock

	// last is what the API server returned.
	last *coordinationv1.Lease
}

// Run renews the Lease. Without a Node, there is none.
func (c *Controller) Run(ctx context.Context) (time.Duration, error) {
	node, _ := c.Node.Get()
	if node == nil {
		return 0, nil
	}
	renewed := c.last
	if c.last == nil {
		found, err := c.Client.Lease(ctx, namePrefix+node.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, err
		}
		if renewed = found; err != nil {
			renewed = &coordinationv1.Lease{}
		}
	}
	renewed = Renewed(renewed, node, c.Clock.Now())
	write := c.Client.UpdateLease
	if renewed.ResourceVersion == "" {
		write = c.Client.CreateLease
	}
	var err error
	if c.last, err = write(ctx, renewed); err != nil {
		c.last = nil // it is read again
		return 0, err
	}
	return period, nil
}

// Renewed returns the Lease of a Node with a new time of its renewal. It belongs to the Node and is deleted with it.
func Renewed(last *coordinationv1.Lease, node *corev1.Node, now time.Time) *coordinationv1.Lease {
	lease := last.DeepCopy()
	lease.Namespace, lease.Name = metav1.NamespaceSystem, namePrefix+node.Name
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(node.Name), ptr.To[int32](duration)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	return lease
}
