// Package flow contains the common machinery of flows. A flow is a pure function from declared and observed state to a
// [Plan]: the ManagedResources that should exist now. [Decide] compares a plan with the live objects and returns the
// steps to take. [Emitter] executes them. See docs/flows.md.
package flow

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Owner is the object for which a flow emits bundles.
type Owner struct {
	// Flow is the name of the flow. It is used as a label value.
	Flow string
	UID  types.UID
	// Namespace and Name of the object; the namespace is empty if it is cluster-scoped.
	Namespace, Name string
}

// String returns "<namespace>/<name>", as in AnnotationOwner.
func (o Owner) String() string { return o.Namespace + "/" + o.Name }

// ParseOwner returns the name of an owner from the value of AnnotationOwner.
func ParseOwner(text string) (types.NamespacedName, bool) {
	namespace, name, found := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, found && name != ""
}

// marks returns the labels of objects emitted for the owner. An owner that is not stored in an API server has no UID
// yet.
func (o Owner) marks() map[string]string {
	if o.UID == "" {
		return map[string]string{LabelFlow: o.Flow}
	}
	return o.Labels()
}

// Labels returns the labels of all objects emitted for the owner. The owner must have a UID.
func (o Owner) Labels() client.MatchingLabels {
	return client.MatchingLabels{LabelFlow: o.Flow, LabelOwner: string(o.UID)}
}

// owns reports whether the flow emitted the object with these labels for this owner.
func (o Owner) owns(labels map[string]string) bool {
	return o.UID != "" && labels[LabelFlow] == o.Flow && labels[LabelOwner] == string(o.UID)
}

// Key identifies a bundle and its ManagedResource.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns "<namespace>/<name>".
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

func keyOf(object client.Object) Key {
	return Key{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Bundle is a set of objects that are shipped in one ManagedResource.
type Bundle struct {
	Key
	// Objects are typed or unstructured. Their status is dropped unless Spec.StatusOnCreation selects them.
	Objects []client.Object
	// Spec is the spec of the ManagedResource: class, dependencies, health checks and so on. Emit sets SecretRefs.
	Spec resourcesv1alpha1.ManagedResourceSpec
	// DeleteAfter are the bundles that must be deleted before this one. Nil stands for the bundles that depend on it, an
	// empty list for none.
	DeleteAfter []Key
	// Labels of the ManagedResource, in addition to the labels of the flow.
	Labels map[string]string
	// Choices are stored with the revision for later plans: see [Live.Choice].
	Choices map[string]string
	// Removes are the objects of protected kinds that leave the bundle on purpose. A revision that drops such an object
	// without an entry here is rejected.
	Removes []object.Key
	// AppliesItself is set if the bundle contains the resource-manager that applies it. The resource-manager must not
	// delete itself: its objects are kept when its ManagedResource is deleted.
	AppliesItself bool
}

// dependencies returns the bundles that this one depends on.
func dependencies(namespace string, spec resourcesv1alpha1.ManagedResourceSpec) []Key {
	keys := make([]Key, 0, len(spec.DependsOn))
	for _, dependency := range spec.DependsOn {
		keys = append(keys, Key{Namespace: cmp.Or(dependency.Namespace, namespace), Name: dependency.Name})
	}
	return keys
}

// On returns a dependency on a bundle.
func On(key Key) resourcesv1alpha1.Dependency {
	return resourcesv1alpha1.Dependency{Name: key.Name, Namespace: key.Namespace}
}

func (b Bundle) String() string { return fmt.Sprintf("bundle %s", b.Key) }
