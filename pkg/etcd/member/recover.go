package member

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
)

// known is what Leases and the store say about backups when a member without data starts.
type known struct {
	// clusters are the IDs of the clusters whose data are lost, as recorded by Leases. They are empty if no cluster was formed.
	clusters []string
	// acceptedLoss, acceptEmpty and declared are the annotations of the operator on the Lease of the member.
	acceptedLoss, acceptEmpty, declared string
	// stored is the content of the Lease of the last delta snapshot.
	stored lease.Snapshot
	// epochs are those in the store.
	epochs []snapshot.Epoch
}

// recovery is how a member without data begins: it restores, forms an empty cluster, or waits.
type recovery struct {
	// restore is set to restore the latest backups, which must reach the revision atLeast.
	restore bool
	atLeast int64
	// follows is the latest epoch in the store.
	follows int
	// wait is why a decision of a person is necessary, empty if it is not.
	wait string
}

// decideRecovery decides whether a member restores the backups. It is pure. Backups are restored only if a Lease records the
// cluster, or if a person has declared it. An empty cluster is formed only if neither a Lease nor the store knows of another one,
// or if a person has accepted it for this cluster.
func decideRecovery(k known) recovery {
	if len(k.epochs) == 0 {
		if len(k.clusters) > 0 {
			return recovery{wait: fmt.Sprintf("the store has no backups of the cluster %s: check spec.backup.store and its bucket",
				strings.Join(k.clusters, ", "))}
		}
		if k.declared != "" {
			return recovery{wait: "the Etcd begins with backups, but the store has none: check spec.backup.store and its bucket. To begin with " +
				"an empty cluster, remove the annotation druid.gardener.cloud/restore-from-backup of the Etcd"}
		}
		return recovery{}
	}
	latest := k.epochs[len(k.epochs)-1]
	continues := func(cluster string) bool { return cluster != "" && snapshot.Continues(k.epochs, cluster) }
	r := recovery{follows: latest.Number}
	switch {
	case k.acceptEmpty == latest.Cluster && len(k.clusters) == 0:
	case len(k.clusters) > 0 && slices.ContainsFunc(k.clusters, continues):
		r.restore = true
		if k.stored.Cluster == latest.Cluster {
			r.atLeast = k.stored.Revision
		}
	case len(k.clusters) > 0:
		r.wait = fmt.Sprintf("the store has the backups of the cluster %s, not of %s: check spec.backup.store", latest.Cluster, strings.Join(k.clusters, ", "))
	case continues(k.acceptedLoss), continues(k.declared), k.declared == lease.RestoreLatest:
		r.restore = true
	default:
		r.wait = fmt.Sprintf("the store has the backups of the cluster %s, but no Lease records a cluster. To restore them, set the annotation "+
			"druid.gardener.cloud/restore-from-backup=%[1]s of the Etcd. To begin with an empty cluster, set druid.gardener.cloud/accept-empty-cluster=%[1]s",
			latest.Cluster)
	}
	return r
}
