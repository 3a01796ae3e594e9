package shoot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// leftAgain is after how long gardenlet looks again for nodes with an old key.
const leftAgain = 30 * time.Second

// Left is what is known about nodes with keys that no pool has any more. An extension that has replaced all machines is not enough to remove
// the configuration of a key, because a node that still runs would lose it.
type Left struct {
	// Keys are the old keys of nodes that exist.
	Keys map[string]bool
	// Unknown is why the nodes could not be listed, or empty. No configuration is removed then.
	Unknown string
}

// keeps reports whether the configuration of an old key must stay.
func (l Left) keeps(key string) bool { return l.Unknown != "" || l.Keys[key] }

// oldKeys returns the keys whose configuration exists although no pool has them. It returns none while the declared pools are invalid.
func (in Inputs) oldKeys() []string {
	if _, err := in.pools(); err != nil {
		return nil
	}
	wanted := namesOf(in.operatingSystemRows())
	var keys []string
	for _, emitted := range in.Emitted {
		if key, is := strings.CutPrefix(emitted.Name, prefixOperatingSystem); is && emitted.Namespace == in.Namespace && !slices.Contains(wanted, emitted.Name) {
			keys = append(keys, key)
		}
	}
	return keys
}

// observeLeft looks for nodes with old keys once the extension has replaced all machines. It asks the API server of the shoot, because a cache
// may be old. The error does not end the pass: it only keeps the configuration of these keys.
func (r *reconciler) observeLeft(ctx context.Context, in *Inputs) error {
	if !in.hasWorkers() || in.Deleting || in.hibernated() || !in.Machines.Finished[bundleWorker] {
		return nil
	}
	keys := in.oldKeys()
	if len(keys) == 0 {
		return nil
	}
	left, err := r.nodesWith(ctx, *in, keys)
	if err != nil {
		left = Left{Unknown: flow.ReasonOf(err)}
	}
	in.Machines.Left = left
	return nil
}

// nodesWith returns which of some keys nodes have.
func (r *reconciler) nodesWith(ctx context.Context, in Inputs, keys []string) (Left, error) {
	left := Left{Keys: map[string]bool{}}
	cluster, err := r.connect(in)
	if err != nil {
		return left, err
	}
	for _, key := range keys {
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		selector := client.MatchingLabels{constants.LabelWorkerPoolNodeAgentSecretName: key}
		if err := cluster.List(ctx, nodes, selector, client.Limit(1)); err != nil {
			return left, fmt.Errorf("list the nodes with the configuration %s: %w", key, err)
		}
		left.Keys[key] = len(nodes.Items) > 0
	}
	return left, nil
}
