package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
)

// kindWatch watches the objects of one kind of Istio while its CustomResourceDefinition is there.
type kindWatch struct {
	istio          *istio
	resource, kind string
	// affected returns the Services that a reduced object matters to.
	affected func(object any) []types.NamespacedName
	reduce   func(*unstructured.Unstructured) any
	indexers toolscache.Indexers

	definition toolscache.SharedIndexInformer

	mu sync.Mutex
	// informers are those of each namespace; nil while the kind is not defined, or not served yet.
	informers []toolscache.SharedIndexInformer
	// defined is set while there is a definition.
	defined bool
	// stop ends the informers.
	stop context.CancelFunc
}

// watchDefinition watches whether the kind is defined.
func (k *kindWatch) watchDefinition(ctx context.Context) error {
	k.definition = k.istio.newDefinitionInformer(k.resource + "." + istioGroup.Group)
	registration, err := k.definition.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { k.begin(ctx) },
		UpdateFunc: func(_, _ any) { k.begin(ctx) },
		DeleteFunc: func(any) { k.end() },
	})
	if err != nil {
		return fmt.Errorf("watch the definition of %s: %w", k.resource, err)
	}
	go k.definition.RunWithContext(ctx)
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			k.istio.announce()
		}
	}()
	return nil
}

// begin starts to watch the objects, unless they are watched.
func (k *kindWatch) begin(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop != nil {
		return
	}
	k.defined = true
	ctx, k.stop = context.WithCancel(ctx)
	go k.run(ctx)
}

func (k *kindWatch) run(ctx context.Context) {
	if !k.istio.waitUntilServed(ctx, k.kind) {
		k.giveUp()
		return
	}
	var informers []toolscache.SharedIndexInformer
	var synced []toolscache.InformerSynced
	for _, namespace := range k.istio.namespaces {
		informer := k.istio.newInformer(k.resource, namespace, k.indexers)
		registration, err := k.watch(informer)
		if err != nil {
			return // an informer that has not been started takes everything
		}
		informers, synced = append(informers, informer), append(synced, registration.HasSynced)
	}
	k.mu.Lock()
	if ctx.Err() == nil {
		k.informers = informers
	}
	k.mu.Unlock()
	for _, informer := range informers {
		go informer.RunWithContext(ctx)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		k.istio.announce()
	}
}

// giveUp has the next event of the definition try again.
func (k *kindWatch) giveUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stop = nil
}

func (k *kindWatch) watch(informer toolscache.SharedIndexInformer) (toolscache.ResourceEventHandlerRegistration, error) {
	if err := informer.SetTransform(func(object any) (any, error) {
		if full, ok := object.(*unstructured.Unstructured); ok {
			return k.reduce(full), nil
		}
		return object, nil
	}); err != nil {
		return nil, err
	}
	return informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { k.istio.enqueue(k.affected(object)...) },
		UpdateFunc: func(before, after any) {
			k.istio.enqueue(k.affected(before)...)
			k.istio.enqueue(k.affected(after)...)
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			k.istio.enqueue(k.affected(object)...)
		},
	})
}

// end stops to watch objects of a kind that is not defined any more.
func (k *kindWatch) end() {
	objects := k.list()
	k.mu.Lock()
	if k.stop != nil {
		k.stop()
	}
	k.informers, k.defined, k.stop = nil, false, nil
	k.mu.Unlock()
	for _, object := range objects {
		k.istio.enqueue(k.affected(object)...)
	}
	k.istio.announce()
}

// known tells whether it is known which objects there are.
func (k *kindWatch) known() bool {
	if k.definition == nil || !k.definition.HasSynced() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.defined {
		return len(k.definition.GetStore().ListKeys()) == 0 // otherwise, the event is on its way
	}
	return len(k.informers) > 0 && !slices.ContainsFunc(k.informers, func(i toolscache.SharedIndexInformer) bool { return !i.HasSynced() })
}

func (k *kindWatch) running() []toolscache.SharedIndexInformer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.informers
}

func (k *kindWatch) list() []any {
	var objects []any
	for _, informer := range k.running() {
		objects = append(objects, informer.GetStore().List()...)
	}
	return objects
}

func (k *kindWatch) byIndex(index, value string) []any {
	var objects []any
	for _, informer := range k.running() {
		found, err := informer.GetIndexer().ByIndex(index, value)
		if err == nil { // it fails for unknown indexes alone
			objects = append(objects, found...)
		}
	}
	return objects
}

func (k *kindWatch) get(name types.NamespacedName) *gateway {
	for _, informer := range k.running() {
		object, found, err := informer.GetStore().GetByKey(name.String())
		if one, ok := object.(*gateway); ok && found && err == nil {
			return one
		}
	}
	return nil
}

// podWatch watches the Pods of gateways with one selector.
type podWatch struct {
	stop context.CancelFunc
	// users are the Services that these gateways expose.
	users map[types.NamespacedName]bool

	mu     sync.Mutex
	synced []toolscache.InformerSynced
	// counts has the number of Pods by namespace.
	counts map[string]int
}

// use has the Pods of the given selectors watched for a Service, and no others. It returns the watches by selector.
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
	tell := func() { i.enqueue(i.usersOf(watch)...) }
	for _, namespace := range i.namespaces {
		informer := metadatainformer.NewFilteredMetadataInformer(i.metadata, podResource, namespace, 0, toolscache.Indexers{},
			func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
		err := informer.SetTransform(reduceGatewayPod)
		registration, handlerErr := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { watch.count(object, 1, tell) },
			DeleteFunc: func(object any) { watch.count(object, -1, tell) },
		})
		if err != nil || handlerErr != nil {
			continue // an informer that has not been started takes everything
		}
		watch.synced = append(watch.synced, registration.HasSynced)
		go informer.RunWithContext(ctx)
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), watch.synced...) {
			tell()
		}
	}()
	return watch
}

// reduceGatewayPod keeps the name of a Pod alone.
func reduceGatewayPod(object any) (any, error) {
	if pod, ok := object.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{ObjectMeta: essentials(pod)}, nil
	}
	return object, nil
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

// count takes in a Pod more or less, and calls tell if its namespace has the first one or none any more.
func (w *podWatch) count(object any, change int, tell func()) {
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
		tell()
	}
}

// found returns the namespaces that have Pods, and whether all were seen.
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
