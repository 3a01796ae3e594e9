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

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/stalepods"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// changesBuffer is how many changes in shoot clusters can be pending. A dropped change is read when the Shoot is checked again.
const changesBuffer = 1024

// clusterScheme contains the kinds that are read from shoot clusters.
var clusterScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}()

// clusterMapper maps these kinds and their lists without discovery.
var clusterMapper = func() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, suffix := range []string{"", "List"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"+suffix), meta.RESTScopeNamespace)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"+suffix), meta.RESTScopeRoot)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"+suffix), meta.RESTScopeNamespace)
		mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"+suffix), meta.RESTScopeRoot)
		mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind(kindMutating+suffix), meta.RESTScopeRoot)
		mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"+suffix), meta.RESTScopeRoot)
	}
	return mapper
}()

// Access describes how to access a shoot cluster.
type Access struct {
	// Revision changes if new connections are needed.
	Revision string
	// Config returns a configuration with new credentials. They are replaced after RenewAfter.
	Config     func() (*rest.Config, error)
	RenewAfter time.Duration
}

// clusters watches the clusters of Shoots whose API servers run.
type clusters struct {
	// changes receives the Shoots in whose clusters objects have changed.
	changes watches.Notifier

	mu    sync.Mutex
	open  map[types.NamespacedName]*connection
	ended bool
}

func newClusters() *clusters {
	return &clusters{changes: watches.NewNotifier(changesBuffer), open: map[types.NamespacedName]*connection{}}
}

// connection is the connection to a shoot cluster, with its watches.
type connection struct {
	// revision identifies the cluster and its access. renew is when the credentials must be replaced.
	revision string
	renew    time.Time
	// cached reads the watched objects. client writes.
	cached client.Reader
	client client.Client
	stop   context.CancelFunc
	// synced is set once all caches are synced, except that of nodes.
	synced atomic.Bool
	// nodes is the watch of nodes; nil for a Shoot without workers.
	nodes *nodeWatch
	// remediated is when webhook configurations were last changed, by kind and name. Reconciles of the same Shoot do not run concurrently.
	remediated map[string]time.Time
}

// Start waits for the end of the process and then stops all watches.
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

// close stops the watches of a cluster, if there are any.
func (c *clusters) close(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if connection := c.open[name]; connection != nil {
		connection.stop()
		delete(c.open, name)
	}
}

// present returns the connection to a cluster, or nil if it is not watched.
func (c *clusters) present(name types.NamespacedName) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[name]
}

// of returns the connection to a cluster. It replaces the connection if the access has changed or the credentials are
// old, because API servers reject expired certificates even on existing connections. It does not block on requests.
func (c *clusters) of(shoot *corev1beta1.Shoot, access *Access, now time.Time) (*connection, error) {
	name := client.ObjectKeyFromObject(shoot)
	limit := 0
	if hasWorkers(shoot) {
		limit = nodeLimit(shoot)
	}
	revision := fmt.Sprintf("%s %s %t %d", shoot.UID, access.Revision, shoot.DeletionTimestamp != nil, limit)
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
	made, err := c.connect(name, config, shoot.DeletionTimestamp != nil, limit)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster of Shoot %s: %w", name, err)
	}
	made.revision, made.renew = revision, now.Add(access.RenewAfter)
	c.open[name] = made
	return made, nil
}

// connect starts watches of a cluster. It watches Pods in kube-system, or in all namespaces once the Shoot is being deleted. It watches nodes
// if their limit is not 0.
func (c *clusters) connect(name types.NamespacedName, config *rest.Config, allPods bool, nodeLimit int) (*connection, error) {
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
		HTTPClient: transport, Scheme: clusterScheme, Mapper: clusterMapper, DefaultTransform: cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: pods, &apiextensionsv1.CustomResourceDefinition{}: {Transform: reduceDefinition},
		},
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
	if nodeLimit > 0 {
		if made.nodes, err = c.watchNodes(running, name, config, transport, nodeLimit); err != nil {
			made.stop()
			return nil, err
		}
	}
	go func() { _ = watched.Start(running) }() // the reflectors log errors
	go func() {
		if watched.WaitForCacheSync(running) {
			made.synced.Store(true)
			c.changed(name)
		}
	}()
	return made, nil
}

// changed triggers a reconcile of a Shoot.
func (c *clusters) changed(name types.NamespacedName) {
	c.changes.Notify(&corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
}

// handler triggers a reconcile of the Shoot for relevant changes after the initial list.
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
			if !sameNode(before, after) && (matters(before) || matters(after)) {
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

// matters reports whether an object may change the constraints or trigger an action: any webhook configuration, stale
// Pods, and definitions whose objects must be converted.
func matters(object any) bool {
	switch object := object.(type) {
	case *corev1.Pod:
		return stalepods.MayBeStale(object)
	case *apiextensionsv1.CustomResourceDefinition:
		return isConverted(object)
	}
	return true
}

// reduceDefinition removes all fields that [isConverted] does not read.
func reduceDefinition(object any) (any, error) {
	definition, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return object, nil
	}
	reduced := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: definition.Name, UID: definition.UID, ResourceVersion: definition.ResourceVersion},
	}
	reduced.Status.StoredVersions = definition.Status.StoredVersions
	if conversion := definition.Spec.Conversion; conversion != nil {
		reduced.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: conversion.Strategy}
	}
	return reduced, nil
}

// isConverted reports whether a webhook must convert stored objects of a definition.
func isConverted(definition *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := definition.Spec.Conversion
	return conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter && len(definition.Status.StoredVersions) > 1
}

// read returns the relevant objects of the cluster, or nil until the caches are synced.
func (c *connection) read(ctx context.Context) (*Cluster, error) {
	if !c.synced.Load() {
		return nil, nil // not known yet
	}
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	var definitions apiextensionsv1.CustomResourceDefinitionList
	for _, list := range []client.ObjectList{&validating, &mutating, &definitions} {
		if err := c.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("read objects of the cluster: %w", err)
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
	var err error
	cluster.Nodes, err = c.nodes.read(ctx)
	return cluster, err
}
