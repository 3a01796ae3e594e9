package faults

import (
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// attest checks a call that writes before the API server executes it. A crash can follow directly, so it checks
// the invariants that must always hold: each of our objects is in the inventory of its ManagedResource, and no
// wanted object is deleted.
func (w *world) attest(c call, body []byte) {
	switch {
	case c.group == resourcesv1alpha1.GroupName && c.resource == "managedresources":
		w.attestRecord(c, body)
	case c.verb == "delete":
		w.attestDeletion(c, body)
	case c.verb == "deletecollection":
		w.violate("%s deletes more than one object", c)
	case c.verb == "patch":
		w.attestApply(c, body)
	}
}

// attestApply checks that a new object of ours is recorded first, and that the dependencies of its ManagedResource
// are applied.
func (w *world) attestApply(c call, body []byte) {
	var applied metav1.PartialObjectMetadata
	if json.Unmarshal(body, &applied) != nil {
		return // a patch of another type: the object exists
	}
	origin, found := resourcesv1alpha1.ParseOrigin(applied.Annotations[resourcesv1alpha1.AnnotationOrigin])
	if !found {
		return
	}
	mr := w.readRecord(origin.Owner)
	if mr == nil || !records(mr, key{applied.GroupVersionKind(), applied.Namespace, applied.Name}) {
		w.violate("%s is applied for %s before it is in the inventory", c, origin)
	}
	if dependency := w.dependencies[origin.Owner.Name]; dependency != "" {
		waits := w.readRecord(types.NamespacedName{Namespace: w.namespace, Name: dependency})
		if waits == nil || resourcesv1alpha1.ConditionOf(waits.Status.Conditions, resourcesv1alpha1.ResourcesApplied).Status != resourcesv1alpha1.ConditionTrue {
			w.violate("%s is applied for %s before its dependency %s is", c, origin, dependency)
		}
	}
}

// isOf reports whether a call is about the object.
func (k key) isOf(c call) bool {
	resource, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return resource.Group == c.group && resource.Resource == c.resource && k.namespace == c.namespace && k.name == c.name
}

// attestDeletion checks that no wanted object is deleted, unless it is replaced, and that the API server checks
// preconditions.
func (w *world) attestDeletion(c call, body []byte) {
	replaced := slices.Contains(w.replaced, c.name)
	for k := range w.wanted(w.then) {
		if k.isOf(c) && !replaced {
			w.violate("%s deletes a wanted object", c)
		}
	}
	if w.collects && w.refersTo(c.resource, c.name) {
		w.violate("%s deletes a referenced object", c)
	}
	if slices.Contains(w.left, c.name) || slices.Contains(w.released, c.name) {
		w.violate("%s deletes an object that must be retained", c)
	}
	var options metav1.DeleteOptions
	err := json.Unmarshal(body, &options)
	if err != nil || options.Preconditions == nil || options.Preconditions.UID == nil || options.Preconditions.ResourceVersion == nil && !replaced {
		w.violate("%s deletes without preconditions: %s", c, body)
	}
}

// attestRecord checks that no object of ours is removed from an inventory, or lost with it, while it exists.
// Exceptions are objects in the inventory of another ManagedResource, objects to retain, and objects that the
// garbage collector deletes.
func (w *world) attestRecord(c call, body []byte) {
	var written struct {
		Metadata struct {
			Finalizers *[]string `json:"finalizers"`
		} `json:"metadata"`
		Status struct {
			Resources *[]resourcesv1alpha1.ObjectReference `json:"resources"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &written); err != nil {
		w.violate("%s: %v", c, err)
		return
	}
	letsGo := c.subresource == "" && written.Metadata.Finalizers == nil && strings.Contains(string(body), `"finalizers"`)
	if !letsGo && written.Status.Resources == nil {
		return
	}
	owner := types.NamespacedName{Namespace: c.namespace, Name: c.name}
	mr := w.readRecord(owner)
	if mr == nil {
		return
	}
	kept := map[key]bool{}
	if !letsGo {
		for _, entry := range *written.Status.Resources {
			kept[entryKey(entry)] = true
		}
	}
	for _, entry := range mr.Status.Resources {
		if k := entryKey(entry); !kept[k] && w.needsRecord(k) && !w.recordedByOther(k, owner) {
			w.violate("%s forgets %s, which exists", c, k)
		}
	}
}

// needsRecord reports whether an object has to be in an inventory.
func (w *world) needsRecord(k key) bool {
	obj := w.read(k)
	if obj == nil || !w.isOurs(obj) || slices.Contains(w.left, k.name) {
		return false
	}
	return !w.collects || obj.Labels[resourcesv1alpha1.LabelGarbageCollectableReference] != "true"
}

func (w *world) readRecord(owner types.NamespacedName) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{}
	err := w.client.Get(w.always(), owner, mr)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.violate("could not read %s: %v", owner, err)
	}
	return mr
}

// recordedByOther reports whether an object is in the stored inventory of a ManagedResource other than the owner.
func (w *world) recordedByOther(k key, owner types.NamespacedName) bool {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := w.client.List(w.always(), list, client.InNamespace(w.namespace)); err != nil {
		w.violate("could not list ManagedResources: %v", err)
	}
	return slices.ContainsFunc(list.Items, func(mr resourcesv1alpha1.ManagedResource) bool { return mr.Name != owner.Name && records(&mr, k) })
}

func records(mr *resourcesv1alpha1.ManagedResource, k key) bool {
	return slices.ContainsFunc(mr.Status.Resources, func(entry resourcesv1alpha1.ObjectReference) bool { return entryKey(entry) == k })
}

// read returns the metadata of an object, or nil if it does not exist.
func (w *world) read(k key) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(k.GroupVersionKind)
	err := w.client.Get(w.always(), client.ObjectKey{Namespace: k.namespace, Name: k.name}, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		w.violate("could not read %s: %v", k, err)
		return nil
	}
	return obj
}
