package care

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/stalepods"
)

// changesBuffer is how many changes in the clusters of Shoots may wait for their handling. What does not fit is seen when the Shoot is looked at again.
const changesBuffer = 1024

// clusterScheme has the kinds that are read from the clusters of Shoots.
var clusterScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}()

// clusterMapper knows these kinds, and their lists, without asking the API servers.
var clusterMapper = func() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, suffix := range []string{"", "List"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"+suffix), meta.RESTScopeNamespace)
		mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"+suffix), meta.RESTScopeRoot)
		mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind(kindMutating+suffix), meta.RESTScopeRoot)
		mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"+suffix), meta.RESTScopeRoot)
	}
	return mapper
}()

// Access is how the cluster of a Shoot is reached.
type Access struct {
	// Revision changes if the cluster has to be reached in another way.
	Revision string
	// Config returns a configuration with new credentials, which are used until RenewAfter.
	Config     func() (*rest.Config, error)
	RenewAfter time.Duration
}

// clusters watches the clusters of the Shoots whose API servers run.
type clusters struct {
	// changes has the Shoots in whose clusters something has changed.
	changes chan event.GenericEvent

	mu    sync.Mutex
	open  map[types.NamespacedName]*connection
	ended bool
}

func newClusters() *clusters {
	return &clusters{changes: make(chan event.GenericEvent, changesBuffer), open: map[types.NamespacedName]*connection{}}
}

// connection is the watch of one cluster.
type connection struct {
	// revision changes with the cluster and with how it is reached, and renew is when its credentials are old.
	revision string
	renew    time.Time
	// cached reads what is watched, and client writes.
	cached client.Reader
	client client.Client
	stop   context.CancelFunc
	// synced is set once all has been read.
	synced atomic.Bool
	// remediated is when configurations of webhooks were changed last, by kind and name. Only one pass at a time works on a Shoot.
	remediated map[string]time.Time
}

// Start ends all watches with the process.
func (c *clusters) Start(ctx context.Context) error {
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for name, connection := range c.open {
		connection.stop()
		delete(c.open, name)
	}
	return nil
}

// close ends the watch of a cluster, if there is one.
func (c *clusters) close(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if connection := c.open[name]; connection != nil {
		connection.stop()
		delete(c.open, name)
	}
}

// present returns the watch of a cluster; nil if the cluster is not watched.
func (c *clusters) present(name types.NamespacedName) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[name]
}

// of returns the watch of a cluster. It begins one if the cluster is not watched, if it is reached in another way, or if the credentials of the present one
// are old: API servers refuse requests with a certificate that has expired on connections that exist, too. Requests are sent in the background only.
func (c *clusters) of(shoot *corev1beta1.Shoot, access *Access, now time.Time) (*connection, error) {
	name := client.ObjectKeyFromObject(shoot)
	revision := fmt.Sprintf("%s %s %t", shoot.UID, access.Revision, shoot.DeletionTimestamp != nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if present := c.open[name]; present != nil {
		if present.revision == revision && now.Before(present.renew) {
			return present, nil
		}
		present.stop()
		delete(c.open, name)
	}
	if c.ended {
		return nil, fmt.Errorf("watch the cluster of Shoot %s: the process ends", name)
	}
	config, err := access.Config()
	if err != nil {
		return nil, fmt.Errorf("watch the cluster of Shoot %s: %w", name, err)
	}
	made, err := c.connect(name, config, shoot.DeletionTimestamp != nil)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster of Shoot %s: %w", name, err)
	}
	made.revision, made.renew = revision, now.Add(access.RenewAfter)
	c.open[name] = made
	return made, nil
}

// connect begins to watch a cluster. Of its Pods those of the system are watched, and all once the Shoot is being deleted.
func (c *clusters) connect(name types.NamespacedName, config *rest.Config, allPods bool) (*connection, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	pods := cache.ByObject{Transform: stalepods.Reduce}
	if !allPods {
		pods.Namespaces = map[string]cache.Config{metav1.NamespaceSystem: {}}
	}
	made := &connection{remediated: map[string]time.Time{}}
	if made.client, err = client.New(config, client.Options{HTTPClient: transport, Scheme: clusterScheme, Mapper: clusterMapper}); err != nil {
		return nil, err
	}
	watched, err := cache.New(config, cache.Options{
		HTTPClient: transport, Scheme: clusterScheme, Mapper: clusterMapper, DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: pods, &apiextensionsv1.CustomResourceDefinition{}: {Transform: reduceDefinition}},
	})
	if err != nil {
		return nil, err
	}
	made.cached = watched
	var running context.Context
	running, made.stop = context.WithCancel(context.Background())
	for _, kind := range []client.Object{
		&corev1.Pod{}, &apiextensionsv1.CustomResourceDefinition{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
		&admissionregistrationv1.MutatingWebhookConfiguration{},
	} {
		informer, err := watched.GetInformer(running, kind, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(c.handler(name))
		}
		if err != nil {
			made.stop()
			return nil, err
		}
	}
	go func() { _ = watched.Start(running) }() // its reflectors log what goes wrong
	go func() {
		if watched.WaitForCacheSync(running) {
			made.synced.Store(true)
			c.changed(name)
		}
	}()
	return made, nil
}

// changed has a Shoot looked at.
func (c *clusters) changed(name types.NamespacedName) {
	select {
	case c.changes <- event.GenericEvent{Object: &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}}:
	default: // it is looked at again soon
	}
}

// handler has the Shoot looked at for changes that matter after all has been read.
func (c *clusters) handler(name types.NamespacedName) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial && matters(object) {
				c.changed(name)
			}
		},
		UpdateFunc: func(before, after any) {
			if old, ok := before.(client.Object); ok {
				if changed, same := after.(client.Object); same && old.GetResourceVersion() == changed.GetResourceVersion() {
					return
				}
			}
			if matters(before) || matters(after) {
				c.changed(name)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, gone := object.(toolscache.DeletedFinalStateUnknown); gone {
				object = tombstone.Obj
			}
			if matters(object) {
				c.changed(name)
			}
		},
	}
}

// matters reports whether an object may change what is found or done: any configuration of webhooks, and of the rest what is found.
func matters(object any) bool {
	switch object := object.(type) {
	case *corev1.Pod:
		return stalepods.MayBeStale(object)
	case *apiextensionsv1.CustomResourceDefinition:
		return isConverted(object)
	}
	return true
}

// reduceDefinition keeps what [isConverted] reads.
func reduceDefinition(object any) (any, error) {
	definition, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return object, nil
	}
	reduced := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition.Name, UID: definition.UID, ResourceVersion: definition.ResourceVersion}}
	reduced.Status.StoredVersions = definition.Status.StoredVersions
	if conversion := definition.Spec.Conversion; conversion != nil {
		reduced.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: conversion.Strategy}
	}
	return reduced, nil
}

// isConverted reports whether a webhook has to convert stored objects of a definition.
func isConverted(definition *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := definition.Spec.Conversion
	return conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter && len(definition.Status.StoredVersions) > 1
}

// read returns what the cluster has; nil if that is not known yet.
func (c *connection) read(ctx context.Context) (*Cluster, error) {
	if !c.synced.Load() {
		return nil, nil // not known yet
	}
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	var definitions apiextensionsv1.CustomResourceDefinitionList
	for _, list := range []client.ObjectList{&validating, &mutating, &definitions} {
		if err := c.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("read what the cluster has: %w", err)
		}
	}
	cluster := &Cluster{}
	for i := range validating.Items {
		cluster.Webhooks = append(cluster.Webhooks, configurationOf(&validating.Items[i]))
	}
	for i := range mutating.Items {
		cluster.Webhooks = append(cluster.Webhooks, configurationOf(&mutating.Items[i]))
	}
	slices.SortFunc(cluster.Webhooks, func(a, b Configuration) int { return strings.Compare(a.String(), b.String()) })
	for i := range definitions.Items {
		if isConverted(&definitions.Items[i]) {
			cluster.Converted = append(cluster.Converted, definitions.Items[i].Name)
		}
	}
	slices.Sort(cluster.Converted)
	return cluster, nil
}
