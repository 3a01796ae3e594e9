// Package flow is what flows have in common. A flow is a pure function from what is declared and what is observed to a [Plan]: the
// ManagedResources that should exist now. [Decide] compares a plan with what lives and returns what has to be written, and [Emitter]
// writes it. See docs/flows.md.
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

// Owner is the object that a flow emits for.
type Owner struct {
	// Flow names the flow. It is the value of a label.
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

// marks returns the labels of what is emitted for the owner. One that no API server has stored has no UID yet.
func (o Owner) marks() map[string]string {
	if o.UID == "" {
		return map[string]string{LabelFlow: o.Flow}
	}
	return o.Labels()
}

// Labels returns the labels of all that is emitted for the owner, which must have a UID.
func (o Owner) Labels() client.MatchingLabels {
	return client.MatchingLabels{LabelFlow: o.Flow, LabelOwner: string(o.UID)}
}

// owns reports whether an object has been emitted by the flow for this owner.
func (o Owner) owns(labels map[string]string) bool {
	return o.UID != "" && labels[LabelFlow] == o.Flow && labels[LabelOwner] == string(o.UID)
}

// Key names a bundle and its ManagedResource.
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

// Bundle is a set of objects that travel in one ManagedResource.
type Bundle struct {
	Key
	// Objects are typed or unstructured. Their status is not sent, unless Spec.StatusOnCreation names them.
	Objects []client.Object
	// Spec is that of the ManagedResource: class, dependencies, health checks and so on. SecretRefs are set by Emit.
	Spec resourcesv1alpha1.ManagedResourceSpec
	// DeleteAfter are the bundles that have to be gone before this one is deleted. Nil stands for those that depend on it, an empty list
	// for none.
	DeleteAfter []Key
	// Labels of the ManagedResource, beside those of the flow.
	Labels map[string]string
	// Choices are remembered with the revision, for the plans to come: see [Live.Choice].
	Choices map[string]string
	// Removes are the objects of protected kinds that leave the bundle on purpose. Without an entry here a revision without them is refused.
	Removes []object.Key
	// AppliesItself is set if the bundle holds the resource-manager that applies it, which must not delete itself: its objects are kept when
	// its ManagedResource is deleted.
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
