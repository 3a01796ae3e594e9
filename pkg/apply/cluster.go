package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// Cluster is the target of an engine. Its methods are those of target.Objects, which accesses a real cluster. Another
// implementation may only compute the effects of writes.
type Cluster interface {
	Discover(gvk schema.GroupVersionKind) (*meta.RESTMapping, error)
	Resource(ref object.Ref) (metadata.ResourceInterface, error)
	ResourceInAnyVersion(ref object.Ref) (metadata.ResourceInterface, error)
	Defined(definition string) (metadata.ResourceInterface, error)
	TryCreate(ctx context.Context, ref object.Ref, body []byte, validation string) error
	TryReplace(ctx context.Context, ref object.Ref, body []byte, resourceVersion string) error
	ReadingOf(ref object.Ref, whole bool) (target.Reading, error)
	// Create creates an object, and Replace updates one that has a resourceVersion, both without server-side apply.
	Create(ctx context.Context, ref object.Ref, body []byte) (*metav1.PartialObjectMetadata, error)
	Replace(ctx context.Context, ref object.Ref, body []byte, resourceVersion string) (*metav1.PartialObjectMetadata, error)
	Delete(ctx context.Context, ref object.Ref, options metav1.DeleteOptions) (left *metav1.PartialObjectMetadata, err error)
	DeleteClaims(ctx context.Context, namespace, name string, uid types.UID) error
	FinalizeNamespace(ctx context.Context, name string) error
	Explain(ref object.Ref, err error) error
	CheckServiceAccount(ctx context.Context, serviceAccount types.NamespacedName) error
	// As returns a cluster that impersonates a ServiceAccount.
	As(serviceAccount types.NamespacedName) (Cluster, error)
}

// realCluster is a Cluster that writes to the real cluster.
type realCluster struct{ target.Writer }

// As returns a cluster that impersonates a ServiceAccount.
func (c realCluster) As(serviceAccount types.NamespacedName) (Cluster, error) {
	objects, err := c.Objects.As(serviceAccount)
	if err != nil {
		return nil, err
	}
	return realCluster{target.Writer{Objects: objects}}, nil
}
