package care

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/component/nodeagent"
	nodepkg "github.com/trellis-k8s/trellis/pkg/node"
)

const (
	// annotationApplied of a Node is the checksum of the configuration that its node agent has applied.
	annotationApplied = "checksum/cloud-config-data"
)

// nodeWatch is the watch of the nodes of a cluster, and of the checksums of their configurations. It ends if there are more nodes than a
// limit, so that a user who creates Nodes without machines cannot exhaust the memory of gardenlet.
type nodeWatch struct {
	cached client.Reader
	synced atomic.Bool

	mu sync.Mutex
	// seen are the nodes that the watch has shown, until there are too many.
	seen    map[types.UID]bool
	limit   int
	crowded bool
	stop    context.CancelFunc
}

// newSecret returns an object for the metadata of a Secret.
func newSecret() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}

// watchNodes starts the watch. It ends with its context.
func (c *clusters) watchNodes(ctx context.Context, name types.NamespacedName, config *rest.Config, transport *http.Client, limit int) (*nodeWatch, error) {
	watch := &nodeWatch{seen: map[types.UID]bool{}, limit: limit}
	ofNodes := labels.SelectorFromSet(labels.Set{constants.LabelGardenRole: nodeagent.RoleConfig})
	watched, err := cache.New(config, cache.Options{
		HTTPClient: transport, Scheme: clusterScheme, Mapper: clusterMapper, ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {Transform: func(object any) (any, error) { return watch.reduce(object, func() { c.changed(name) }) }},
			newSecret(): {
				Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {LabelSelector: ofNodes}}, Transform: cachetransform.Of(reduceChecksum),
			},
		},
	})
	if err != nil {
		return nil, err
	}
	watch.cached = watched
	var running context.Context
	running, watch.stop = context.WithCancel(ctx)
	for _, kind := range []client.Object{&corev1.Node{}, newSecret()} {
		informer, err := watched.GetInformer(running, kind, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(c.handler(name))
		}
		if err == nil {
			_, err = informer.AddEventHandler(watch.deletions())
		}
		if err != nil {
			watch.stop()
			return nil, err
		}
	}
	go func() { _ = watched.Start(running) }() // the reflectors log errors
	go func() {
		if watched.WaitForCacheSync(running) {
			watch.synced.Store(true)
			c.changed(name)
		}
	}()
	return watch, nil
}

// reduce returns a node with only the fields that the condition depends on. It ends the watch if there are too many nodes.
func (w *nodeWatch) reduce(object any, report func()) (any, error) {
	node, is := object.(*corev1.Node)
	if !is {
		return object, nil
	}
	if w.count(node.UID) {
		report()
	}
	reduced := &corev1.Node{ObjectMeta: cachetransform.Meta(node)}
	reduced.Labels = cachetransform.KeepKeys(node.Labels, constants.LabelWorkerPool, constants.LabelWorkerPoolNodeAgentSecretName)
	reduced.Annotations = cachetransform.KeepKeys(node.Annotations, annotationApplied, constants.AnnotationNodeAgentAppliedAt)
	reduced.Status.NodeInfo.KubeletVersion = node.Status.NodeInfo.KubeletVersion
	for _, taint := range node.Spec.Taints {
		if taint.Key == nodepkg.TaintLeaving {
			reduced.Spec.Taints = []corev1.Taint{{Key: taint.Key}}
		}
	}
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady, corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			kept := corev1.NodeCondition{Type: condition.Type, Status: condition.Status}
			if isNotReady(condition) {
				kept.LastTransitionTime = condition.LastTransitionTime
			}
			reduced.Status.Conditions = append(reduced.Status.Conditions, kept)
		}
	}
	return reduced, nil
}

// count records a node, and reports whether the limit has just been exceeded.
func (w *nodeWatch) count(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crowded {
		return false
	}
	w.seen[uid] = true
	if w.crowded = len(w.seen) > w.limit; w.crowded {
		w.seen = nil
		w.stop()
	}
	return w.crowded
}

// deletions removes nodes that were deleted from the count.
func (w *nodeWatch) deletions() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if tombstone, gone := object.(toolscache.DeletedFinalStateUnknown); gone {
			object = tombstone.Obj
		}
		if node, is := object.(*corev1.Node); is {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.seen, node.UID)
		}
	}}
}

// isCrowded reports whether there are too many nodes.
func (w *nodeWatch) isCrowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crowded
}

// reduceChecksum keeps the checksum of the metadata of a Secret, and which node applies the configuration first.
func reduceChecksum(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	reduced := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: cachetransform.Meta(object)}
	reduced.Annotations = cachetransform.KeepKeys(object.Annotations, nodeagent.AnnotationChecksum,
		constants.AnnotationNodeAgentFirstNode, constants.AnnotationNodeAgentTriedChecksum)
	return reduced
}

// sameNode reports whether the condition does not depend on the change of a node. Heartbeats of nodes change nothing else.
func sameNode(before, after any) bool {
	old, was := before.(*corev1.Node)
	changed, is := after.(*corev1.Node)
	return was && is && nodeOf(old) == nodeOf(changed)
}

// nodeOf returns what the condition depends on.
func nodeOf(node *corev1.Node) Node {
	problem, pressure := problemOf(node.Status.Conditions)
	found := Node{
		Name: node.Name, Pool: node.Labels[constants.LabelWorkerPool], Secret: node.Labels[constants.LabelWorkerPoolNodeAgentSecretName],
		Applied: node.Annotations[annotationApplied], Kubelet: node.Status.NodeInfo.KubeletVersion, Problem: problem, Pressure: pressure,
		Leaving: nodepkg.IsLeaving(node), AppliedAt: nodepkg.AppliedAt(node),
	}
	if i := slices.IndexFunc(node.Status.Conditions, isNotReady); i >= 0 {
		found.NotReadySince = node.Status.Conditions[i].LastTransitionTime.UTC()
	}
	return found
}

// isNotReady reports whether a condition says that its node is not ready, or that this is unknown.
func isNotReady(condition corev1.NodeCondition) bool {
	return condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue
}

// read returns the nodes, or nil until they are known.
func (w *nodeWatch) read(ctx context.Context) (*Nodes, error) {
	switch {
	case w == nil:
		return nil, nil
	case w.isCrowded():
		return &Nodes{Crowded: true}, nil
	case !w.synced.Load():
		return nil, nil
	}
	var list corev1.NodeList
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	for _, each := range []client.ObjectList{&list, secrets} {
		if err := w.cached.List(ctx, each, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("read the nodes of the cluster: %w", err)
		}
	}
	nodes := &Nodes{Checksums: map[string]string{}, First: map[string]string{}}
	for i := range list.Items {
		nodes.Items = append(nodes.Items, nodeOf(&list.Items[i]))
	}
	slices.SortFunc(nodes.Items, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range secrets.Items {
		name, annotations := secrets.Items[i].Name, secrets.Items[i].Annotations
		checksum := annotations[nodeagent.AnnotationChecksum]
		nodes.Checksums[name] = checksum
		first, of, _ := strings.Cut(annotations[constants.AnnotationNodeAgentFirstNode], "/")
		if of == checksum && annotations[constants.AnnotationNodeAgentTriedChecksum] != checksum {
			nodes.First[name] = first
		}
	}
	return nodes, nil
}
