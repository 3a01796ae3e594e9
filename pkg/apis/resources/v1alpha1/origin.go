package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Origin is the value of AnnotationOrigin: the source cluster and the ManagedResource that own an object.
type Origin struct {
	// ClusterID is empty if the resource-manager has no cluster identity configured.
	ClusterID string
	// Owner is the ManagedResource.
	Owner types.NamespacedName
}

// String returns "[<cluster id>:]<namespace>/<name>".
func (o Origin) String() string {
	if o.ClusterID == "" {
		return o.Owner.String()
	}
	return o.ClusterID + ":" + o.Owner.String()
}

// ParseOrigin reads the value of AnnotationOrigin. It returns false if the value is not an origin.
func ParseOrigin(value string) (Origin, bool) {
	clusterID, path, found := strings.Cut(value, ":")
	if !found {
		clusterID, path = "", value
	}
	namespace, name, found := strings.Cut(path, "/")
	if !found || namespace == "" || name == "" || strings.Contains(path, ":") || strings.Contains(name, "/") {
		return Origin{}, false
	}
	return Origin{ClusterID: clusterID, Owner: types.NamespacedName{Namespace: namespace, Name: name}}, true
}
