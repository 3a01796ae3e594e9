package systemcomponents

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nodes knows the tolerations of the selected nodes. It looks through the nodes when labels or taints of one have changed, not for
// every Pod.
type Nodes struct {
	reader   client.Reader
	selector labels.Selector
	// changes counts what may have changed the tolerations.
	changes atomic.Int64
	// known is what the last look found.
	known atomic.Pointer[knowledge]
}

// knowledge is what a look through the nodes found.
type knowledge struct {
	tolerations []corev1.Toleration
	// changes is how many there had been when the look began.
	changes int64
}

// Watch returns the tolerations of the nodes with all labels of a selector, kept up to date by the informer of Nodes that fills the
// cache of the reader. It does not wait until the cache is filled; the reader does.
func Watch(ctx context.Context, reader client.Reader, informers cache.Informers, nodeSelector map[string]string) (*Nodes, error) {
	informer, err := informers.GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch nodes for their taints: %w", err)
	}
	result := newNodes(reader, nodeSelector)
	if _, err := informer.AddEventHandler(result.eventHandler()); err != nil {
		return nil, fmt.Errorf("watch nodes for their taints: %w", err)
	}
	return result, nil
}

func newNodes(reader client.Reader, nodeSelector map[string]string) *Nodes {
	return &Nodes{reader: reader, selector: labels.SelectorFromSet(nodeSelector)}
}

// eventHandler counts changes. The cache calls it after it has changed itself, so that the next look sees what was counted.
func (n *Nodes) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { n.changes.Add(1) },
		DeleteFunc: func(any) { n.changes.Add(1) },
		UpdateFunc: func(before, after any) {
			if !sameTaints(before, after) {
				n.changes.Add(1)
			}
		},
	}
}

// sameTaints reports whether two states of a node, which changes many times a minute, are equal in the relevant fields.
func sameTaints(before, after any) bool {
	old, isNode := before.(*corev1.Node)
	if !isNode {
		return false
	}
	current, isNode := after.(*corev1.Node)
	return isNode && equality.Semantic.DeepEqual(old.Spec.Taints, current.Spec.Taints) && equality.Semantic.DeepEqual(old.Labels, current.Labels)
}

// Tolerations returns what tolerates the taints of the selected nodes, without duplicates, by key, value and effect.
func (n *Nodes) Tolerations(ctx context.Context) ([]corev1.Toleration, error) {
	// Counted before the look: what changes meanwhile makes the next call look again.
	changes := n.changes.Load()
	if known := n.known.Load(); known != nil && known.changes == changes {
		return known.tolerations, nil
	}
	nodes := &corev1.NodeList{}
	if err := n.reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	known := &knowledge{tolerations: ofNodes(nodes.Items, n.selector), changes: changes}
	n.known.Store(known)
	return known.tolerations, nil
}
