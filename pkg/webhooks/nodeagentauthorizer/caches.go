package nodeagentauthorizer

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	// labelNode of a Machine is the name of its Node.
	labelNode = "node"
	// labelSecret of a Node, and of the Node template of a Machine, is the name of the Secret with the operating system
	// configuration.
	labelSecret = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// labelPool of such a Secret is the name of the worker pool.
	labelPool = "worker.gardener.cloud/pool"
)

var machineKind = schema.GroupVersionKind{Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: "Machine"}

// AddToManager adds the caches of the authorizer to the manager of the source cluster, and returns the authorizer. It
// sets the fields Source and Target of the options. The caches run in all replicas and are filled in the background.
func AddToManager(mgr manager.Manager, target cluster.Cluster, options Options) (http.Handler, error) {
	var err error
	if options.Target, err = addCache(mgr, target, targetCacheOptions(), newNode(), newSecret()); err != nil {
		return nil, fmt.Errorf("add a cache of Nodes and Secrets of the target cluster: %w", err)
	}
	if options.MachineNamespace != nil {
		if options.Source, err = addCache(mgr, mgr, sourceCacheOptions(*options.MachineNamespace), newMachine()); err != nil {
			return nil, fmt.Errorf("add a cache of Machines of the source cluster: %w", err)
		}
	}
	return NewHandler(options), nil
}

func addCache(mgr manager.Manager, of cluster.Cluster, options cache.Options, objects ...client.Object) (Cluster, error) {
	options.Scheme, options.HTTPClient, options.Mapper = of.GetScheme(), of.GetHTTPClient(), of.GetRESTMapper()
	options.NewInformer = rewatch.NewInformer
	reduced, err := cache.New(of.GetConfig(), options)
	if err != nil {
		return Cluster{}, err
	}
	if err := mgr.Add(watches.InEveryReplica(reduced)); err != nil {
		return Cluster{}, err
	}
	return Cluster{Cache: reduced, Live: of.GetAPIReader()}, mgr.Add(&opening{cache: reduced, objects: objects, log: mgr.GetLogger()})
}

// opening starts watches before the first request needs them. It does not wait for the caches to be filled. Requests
// retry watches that could not be started.
type opening struct {
	cache   cache.Cache
	objects []client.Object
	log     logr.Logger
}

// NeedLeaderElection returns false, because all replicas need the caches.
func (o *opening) NeedLeaderElection() bool { return false }

// Start starts the watches.
func (o *opening) Start(ctx context.Context) error {
	for _, object := range o.objects {
		_, err := o.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			o.log.Error(err, "Cannot watch a kind that the authorizer of node agents needs; retrying",
				"kind", object.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	return nil
}

// sourceCacheOptions returns the options of a cache of Machines. They do not name the kind, because its
// CustomResourceDefinition might not exist yet.
func sourceCacheOptions(namespace string) cache.Options {
	return cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: cachetransform.Of(reduceMachine)}
}

// targetCacheOptions returns the options of a cache of the metadata of Nodes and of Secrets of worker pools.
func targetCacheOptions() cache.Options {
	ofPool, err := labels.NewRequirement(labelPool, selection.Exists, nil)
	utilruntime.Must(err)
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		newNode(): {Transform: cachetransform.Of(reduceMetadata)},
		newSecret(): {
			Namespaces: map[string]cache.Config{secretNamespace: {LabelSelector: labels.NewSelector().Add(*ofPool)}},
			Transform:  cachetransform.Of(reduceMetadata),
		},
	}}
}

func newMachine() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(machineKind)
	return object
}

func newNode() *metav1.PartialObjectMetadata   { return newMetadata("Node") }
func newSecret() *metav1.PartialObjectMetadata { return newMetadata("Secret") }

func newMetadata(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}

// reduceMachine returns a Machine with only the fields that the authorizer reads.
func reduceMachine(object *unstructured.Unstructured) *unstructured.Unstructured {
	reduced := newMachine()
	reduced.SetNamespace(object.GetNamespace())
	reduced.SetName(object.GetName())
	reduced.SetResourceVersion(object.GetResourceVersion())
	reduced.SetUID(object.GetUID())
	if name, found := object.GetLabels()[labelNode]; found {
		reduced.SetLabels(map[string]string{labelNode: name})
	}
	if name := secretOfMachine(object); name != "" {
		// This cannot fail, because the object has no spec yet.
		_ = unstructured.SetNestedStringMap(reduced.Object, map[string]string{labelSecret: name}, machineLabels...)
	}
	return reduced
}

var machineLabels = []string{"spec", "nodeTemplate", "metadata", "labels"}

// secretOfMachine returns the name of the Secret with the configuration, or an empty string if the Machine does not have
// one.
func secretOfMachine(object *unstructured.Unstructured) string {
	name, _, err := unstructured.NestedString(object.Object, append(machineLabels[:len(machineLabels):len(machineLabels)], labelSecret)...)
	if err != nil { // not a map of labels, which the API of Machines does not allow
		return ""
	}
	return name
}

// reduceMetadata returns metadata with only the fields that the authorizer reads.
func reduceMetadata(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	reduced := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: cachetransform.Meta(object)}
	reduced.Labels = cachetransform.KeepKeys(object.Labels, labelSecret, labelPool, corev1.LabelHostname)
	return reduced
}
