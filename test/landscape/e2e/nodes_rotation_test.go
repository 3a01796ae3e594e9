package e2e

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// rotation rotates all credentials of the Shoot. Nodes stay until their pool is rolled out on request, and are then replaced one after the
// other. Neither a request to the API server nor one to a user's program fails. The only member of each etcd starts again with new certificates:
// requests to the API server wait for it.
func (n *shootNodes) rotation() {
	n.t.Helper()
	key := client.ObjectKeyFromObject(n.shoot)
	customers := n.startCustomers(n.openShop())
	users := append(n.startUsers(n.config), customers)
	n.connectForRestart(users[:2])
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)

	n.step(constants.OperationRotateCredentialsStartWithoutWorkersRollout, corev1beta1.RotationWaitingForWorkersRollout)
	n.noneFailed(users, "the first step of the rotation")
	n.sameNodes(old, "the first step of the rotation")
	rotation := n.shoot.Status.Credentials.Rotation
	if pending := rotation.CertificateAuthorities.PendingWorkersRollouts; len(pending) != 1 || pending[0].Name != "small" {
		n.t.Errorf("the pools %+v wait for their rollout", pending)
	}

	n.step(constants.OperationRotateRolloutWorkers+"=small", corev1beta1.RotationPrepared)
	n.replaced(old)
	n.noneFailed(users, "the rollout of the nodes")

	n.connect()
	n.connectForRestart(users[:2])
	n.step(constants.OperationRotateCredentialsComplete, corev1beta1.RotationCompleted)
	n.settled("two nodes are ready", 2)
	n.noneFailed(users, "the last step of the rotation")
	for _, u := range users {
		u.stop()
	}
	must(n.t, n.fleet.Get(n.ctx, key, n.shoot))
}

// connectForRestart connects users with the current credentials. Their requests wait for an etcd that starts again.
func (n *shootNodes) connectForRestart(users []*user) {
	n.t.Helper()
	for _, u := range users {
		u.connect(n.connectionFor(n.config, u.name == connectsEachTime, restartTimeout))
	}
}

// step requests an operation, and waits until the CAs and the service account key have reached a phase.
func (n *shootNodes) step(operation string, phase corev1beta1.CredentialsRotationPhase) {
	n.t.Helper()
	began, key := time.Now(), client.ObjectKeyFromObject(n.shoot)
	must(n.t, n.fleet.Patch(n.ctx, n.shoot, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, constants.AnnotationGardenerOperation, operation))))
	n.within(rotationTimeout, operation, func() error {
		must(n.t, n.fleet.Get(n.ctx, key, n.shoot))
		if n.shoot.Status.Credentials == nil || n.shoot.Status.Credentials.Rotation == nil {
			return fmt.Errorf("no rotation has started: %+v", n.shoot.Status.LastOperation)
		}
		rotation := n.shoot.Status.Credentials.Rotation
		if rotation.CertificateAuthorities.Phase != phase || rotation.ServiceAccountKey.Phase != phase {
			return fmt.Errorf("authorities %s, service account key %s: %+v", rotation.CertificateAuthorities.Phase, rotation.ServiceAccountKey.Phase, n.shoot.Status.LastOperation)
		}
		return n.fleet.ShootIsReady(n.ctx, key)
	})
	n.t.Logf("%s took %s", operation, time.Since(began).Round(time.Second))
}

// replaced fails if one of these nodes still exists.
func (n *shootNodes) replaced(old map[types.UID]bool) {
	n.t.Helper()
	n.settled("two nodes are ready", 2)
	present, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	for uid := range old {
		if present[uid] {
			n.t.Errorf("the node %s still exists", uid)
		}
	}
}
