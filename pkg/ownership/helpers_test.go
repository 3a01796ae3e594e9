package ownership

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

var (
	shop = types.NamespacedName{Namespace: "garden", Name: "shop"}
	bank = types.NamespacedName{Namespace: "garden", Name: "bank"}
)

func keyNamed(name string) object.Key {
	return object.Key{Kind: "ConfigMap", Namespace: "a", Name: name}
}
