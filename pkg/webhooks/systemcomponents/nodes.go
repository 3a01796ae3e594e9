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

// Nodes provides the tolerations of the selected nodes. It lists the nodes again only if the labels or taints of a node
// changed, not for every Pod.
type Nodes struct {
	reader   client.Reader
	selector labels.Selector
	// changes counts the changes that can affect the tolerations.
	changes atomic.Int64
	// known is the result of the last list.
	known atomic.Pointer[knowledge]
}

// knowledge is the result of listing the nodes.
type knowledge struct {
	tolerations []corev1.Toleration
	// changes is the value of Nodes.changes when the list began.
	changes int64
}

// Watch returns the tolerations of the nodes with all labels of a selector. The informer of Nodes, which fills the cache
// of the reader, keeps them up to date. Watch does not wait until the cache is filled, but the reader does.
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

// eventHandler counts changes. The cache calls it after it was updated, so that the next list includes the counted
// change.
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

// sameTaints reports whether the relevant fields of two states of a node are equal. Nodes change many times a minute.
func sameTaints(before, after any) bool {
	old, isNode := before.(*corev1.Node)
	if !isNode {
		return false
	}
	current, isNode := after.(*corev1.Node)
	return isNode && equality.Semantic.DeepEqual(old.Spec.Taints, current.Spec.Taints) &&
		equality.Semantic.DeepEqual(old.Labels, current.Labels)
}

// Tolerations returns the tolerations of the taints of the selected nodes, without duplicates, sorted by key, value and
// effect.
func (n *Nodes) Tolerations(ctx context.Context) ([]corev1.Toleration, error) {
	// Load the count before the list. A concurrent change then makes the next call list again.
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
