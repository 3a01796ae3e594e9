package controller

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// podWatch watches the Pods of gateways with one selector.
type podWatch struct {
	stop context.CancelFunc
	// users are the Services that these gateways expose.
	users map[types.NamespacedName]bool

	mu     sync.Mutex
	synced []toolscache.InformerSynced
	// counts is the number of Pods by namespace.
	counts map[string]int
}

// use watches the Pods of the given selectors for a Service, and stops watches that no Service uses any more. It
// returns the watches by selector.
func (i *istio) use(service types.NamespacedName, selectors []string) map[string]*podWatch {
	i.mu.Lock()
	defer i.mu.Unlock()
	used := map[string]*podWatch{}
	for _, selector := range selectors {
		if i.pods[selector] == nil {
			i.pods[selector] = i.watchPods(selector)
		}
		used[selector] = i.pods[selector]
		used[selector].users[service] = true
	}
	for selector, watch := range i.pods {
		if used[selector] != nil {
			continue
		}
		if delete(watch.users, service); len(watch.users) == 0 {
			watch.stop()
			delete(i.pods, selector)
		}
	}
	return used
}

func (i *istio) watchPods(selector string) *podWatch {
	ctx, stop := context.WithCancel(i.ctx)
	watch := &podWatch{stop: stop, users: map[types.NamespacedName]bool{}, counts: map[string]int{}}
	onChange := func() { i.enqueue(i.usersOf(watch)...) }
	for _, namespace := range i.namespaces {
		informer := metadatainformer.NewFilteredMetadataInformer(i.metadata, podResource, namespace, 0, toolscache.Indexers{},
			func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
		err := informer.SetTransform(cachetransform.Of(reduceGatewayPod))
		registration, handlerErr := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { watch.count(object, 1, onChange) },
			DeleteFunc: func(object any) { watch.count(object, -1, onChange) },
		})
		if err != nil || handlerErr != nil {
			continue // does not happen: informers that were not started accept all handlers
		}
		watch.synced = append(watch.synced, registration.HasSynced)
		go informer.RunWithContext(ctx)
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), watch.synced...) {
			onChange()
		}
	}()
	return watch
}

// reduceGatewayPod reduces a Pod to its identity.
func reduceGatewayPod(pod *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: cachetransform.Meta(pod)}
}

func (i *istio) usersOf(watch *podWatch) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	var users []types.NamespacedName
	for user := range watch.users {
		users = append(users, user)
	}
	return users
}

// count adds or removes a Pod. It calls onChange for the first and the last Pod of a namespace.
func (w *podWatch) count(object any, change int, onChange func()) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(metav1.Object)
	if !ok {
		return
	}
	w.mu.Lock()
	before := w.counts[pod.GetNamespace()]
	w.counts[pod.GetNamespace()] = before + change
	if before+change <= 0 {
		delete(w.counts, pod.GetNamespace())
	}
	w.mu.Unlock()
	if before == 0 || before+change <= 0 {
		onChange()
	}
}

// found returns the namespaces with Pods, and whether all Pods are known.
func (w *podWatch) found() (namespaces []string, known bool) {
	if slices.ContainsFunc(w.synced, func(synced toolscache.InformerSynced) bool { return !synced() }) {
		return nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for namespace := range w.counts {
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	return namespaces, true
}
