package managedresource

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

var (
	configMapKind  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secretKind     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	namespaceKind  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	widgetKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

	shop = types.NamespacedName{Namespace: "garden", Name: "shop"}
	bank = types.NamespacedName{Namespace: "garden", Name: "bank"}
)

func manifestOf(gvk schema.GroupVersionKind, namespace, name string) object.Manifest {
	return object.Manifest{
		Ref:    object.Ref{GroupVersionKind: gvk, Namespace: namespace, Name: name},
		Digest: "sent",
	}
}

func entry(gvk schema.GroupVersionKind, namespace, name, digest string) resourcesv1alpha1.ObjectReference {
	return entryOf(manifestOf(gvk, namespace, name), digest)
}

func inventoryWith(entries ...resourcesv1alpha1.ObjectReference) inventory {
	return inventoryOf(entries, nil)
}

func expectContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not contain %q", text, part)
		}
	}
}
