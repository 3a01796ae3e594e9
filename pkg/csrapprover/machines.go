package csrapprover

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// labelNode is the label of a Machine with the name of its Node.
const labelNode = "node"

// byNode is the index of Machines by that label.
const byNode = "node"

var machineResource = schema.GroupVersionResource{Group: "machine.sapcloud.io", Version: "v1alpha1", Resource: "machines"}

// Machines reads the metadata of the Machines in a namespace. A watch knows the Machine of each Node, which avoids
// searches. Decisions use objects that are read from the API server. Until the watch works, Machines are listed from
// the API server.
type Machines struct {
	namespace string
	client    metadata.ResourceInterface
	informer  cache.SharedIndexInformer
	log       logr.Logger
}

// NewMachines returns the Machines of a namespace of the cluster that config points to.
func NewMachines(config *rest.Config, httpClient *http.Client, namespace string, log logr.Logger) (*Machines, error) {
	metadataClient, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a metadata client for Machines of the source cluster: %w", err)
	}
	m := &Machines{namespace: namespace, client: metadataClient.Resource(machineResource).Namespace(namespace), log: log}
	m.informer = metadatainformer.NewFilteredMetadataInformer(metadataClient, machineResource, namespace, 0,
		cache.Indexers{byNode: indexByNode}, nil).Informer()
	if err := m.informer.SetTransform(cachetransform.Of(keepNode)); err != nil {
		return nil, fmt.Errorf("set up the watch of Machines: %w", err)
	}
	if err := m.informer.SetWatchErrorHandlerWithContext(m.explain); err != nil {
		return nil, fmt.Errorf("set up the watch of Machines: %w", err)
	}
	return m, nil
}

// NeedLeaderElection makes only the leader watch.
func (m *Machines) NeedLeaderElection() bool { return true }

// Start watches until the context ends. A failed watch is restarted, even if the source cluster does not serve
// Machines.
func (m *Machines) Start(ctx context.Context) error {
	m.informer.RunWithContext(ctx)
	return nil
}

// explain logs why the watch does not work. It does not log expired watches and resourceVersions, which occur
// regularly.
func (m *Machines) explain(_ context.Context, _ *cache.Reflector, err error) {
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		m.log.V(1).Info("Cannot watch Machines in the source cluster; listing them for each request until the watch works",
			"namespace", m.namespace, "cause", err.Error())
	}
}

// keepNode reduces a Machine to its identity and the name of its Node.
func keepNode(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	reduced := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.Namespace, Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
	}}
	if node := object.Labels[labelNode]; node != "" {
		reduced.Labels = map[string]string{labelNode: node}
	}
	return reduced
}

func indexByNode(obj any) ([]string, error) {
	if object, ok := obj.(*metav1.PartialObjectMetadata); ok && object.Labels[labelNode] != "" {
		return []string{object.Labels[labelNode]}, nil
	}
	return nil, nil
}

// get reads a Machine.
func (m *Machines) get(ctx context.Context, name string) (machine, error) {
	object, err := m.client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case isAbsent(err):
		return machine{}, nil
	case err != nil:
		return machine{}, m.explained(err)
	}
	return machine{found: true, node: object.Labels[labelNode]}, nil
}

// ofNode returns the names of the Machines with the label of a Node. If the watch shows exactly one, only that Machine
// is read from the API server, so the absence of further ones is known from the watch. Otherwise, the Machines are
// listed from the API server.
func (m *Machines) ofNode(ctx context.Context, node string) ([]string, error) {
	if len(validation.IsValidLabelValue(node)) > 0 {
		return nil, nil // no label can have such a value
	}
	if m.informer.HasSynced() {
		seen, err := m.informer.GetIndexer().ByIndex(byNode, node)
		if err != nil {
			return nil, fmt.Errorf("look for the Machines of Node %q: %w", node, err)
		}
		if len(seen) == 1 {
			if object, ok := seen[0].(*metav1.PartialObjectMetadata); ok {
				if live, err := m.get(ctx, object.Name); err != nil || live.node == node {
					return []string{object.Name}, err
				}
			}
		}
	}
	return m.search(ctx, node)
}

// search lists the Machines of a Node from the API server.
func (m *Machines) search(ctx context.Context, node string) ([]string, error) {
	list, err := m.client.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelNode: node}.String()})
	if err == nil && list.ResourceVersion == "" {
		err = errNoList // a response that is not from an API server must not count as an empty list
	}
	if err != nil {
		return nil, m.explained(err)
	}
	var names []string
	for _, object := range list.Items {
		names = append(names, object.Name)
	}
	return names, nil
}

// explained adds the remedy to an error.
func (m *Machines) explained(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the source cluster does not serve Machines (%s), but controllers.csrApprover.machineNamespace is %q: install the "+
			"CustomResourceDefinition of Machines, or remove the field: %w", machineResource.GroupResource(), m.namespace, err)
	}
	return fmt.Errorf("read Machines of namespace %q of the source cluster: %w", m.namespace, err)
}
