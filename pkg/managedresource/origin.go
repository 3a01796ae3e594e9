package managedresource

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// origin is the value of the origin annotation: which ManagedResource of which source cluster owns an object.
type origin struct {
	// clusterID is empty if the resource-manager has no cluster identity configured.
	clusterID string
	owner     types.NamespacedName
}

// String returns "[<cluster id>:]<namespace>/<name>".
func (o origin) String() string {
	if o.clusterID == "" {
		return o.owner.String()
	}
	return o.clusterID + ":" + o.owner.String()
}

// parseOrigin reads an origin annotation.
func parseOrigin(value string) (origin, bool) {
	clusterID, path, found := strings.Cut(value, ":")
	if !found {
		clusterID, path = "", value
	}
	namespace, name, found := strings.Cut(path, "/")
	if !found || namespace == "" || name == "" || strings.Contains(path, ":") || strings.Contains(name, "/") {
		return origin{}, false
	}
	return origin{clusterID: clusterID, owner: types.NamespacedName{Namespace: namespace, Name: name}}, true
}
