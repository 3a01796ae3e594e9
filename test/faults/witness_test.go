package faults

import (
	"context"
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

// attest looks at a call that writes, before the API server carries it out. A crash could come right after it, so here is checked
// what has to hold at every instant: whatever is ours is in the inventory of its ManagedResource, and whatever is wanted is not deleted.
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

// attestApply checks that what is about to be ours is recorded.
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
}

// attestDeletion checks that nothing is deleted that is wanted, unless it is replaced, and that the API server checks what is deleted.
func (w *world) attestDeletion(c call, body []byte) {
	replaced := slices.Contains(w.replaced, c.name)
	for k := range w.wanted(w.then) {
		resource, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
		if resource.Group == c.group && resource.Resource == c.resource && k.namespace == c.namespace && k.name == c.name && !replaced {
			w.violate("%s deletes what is wanted", c)
		}
	}
	var options metav1.DeleteOptions
	err := json.Unmarshal(body, &options)
	if err != nil || options.Preconditions == nil || options.Preconditions.UID == nil || options.Preconditions.ResourceVersion == nil && !replaced {
		w.violate("%s deletes without preconditions: %s", c, body)
	}
}

// attestRecord checks that nothing leaves an inventory, or goes with it, as long as it is there and belongs to its ManagedResource,
// unless it is declared for another one.
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
		if k := entryKey(entry); !kept[k] && w.belongsTo(k, owner) && !w.declaredForOther(k, owner) {
			w.violate("%s forgets %s, which is there", c, k)
		}
	}
}

func (w *world) readRecord(owner types.NamespacedName) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{}
	err := w.client.Get(context.WithoutCancel(w.Context()), owner, mr)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.violate("could not read %s: %v", owner, err)
	}
	return mr
}

// declaredForOther tells whether an object is declared for another ManagedResource than the owner. See "What is open" in
// docs/faults.md: it should be in the inventory of that one.
func (w *world) declaredForOther(k key, owner types.NamespacedName) bool {
	other, declared := w.wanted(w.then)[k]
	return declared && other.by != owner.Name
}

func records(mr *resourcesv1alpha1.ManagedResource, k key) bool {
	return slices.ContainsFunc(mr.Status.Resources, func(entry resourcesv1alpha1.ObjectReference) bool { return entryKey(entry) == k })
}

// belongsTo tells whether an object is there with the origin of a ManagedResource.
func (w *world) belongsTo(k key, owner types.NamespacedName) bool {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(k.GroupVersionKind)
	err := w.client.Get(context.WithoutCancel(w.Context()), client.ObjectKey{Namespace: k.namespace, Name: k.name}, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false
	}
	if err != nil {
		w.violate("could not read %s: %v", k, err)
		return false
	}
	origin, _ := resourcesv1alpha1.ParseOrigin(obj.Annotations[resourcesv1alpha1.AnnotationOrigin])
	return origin.Owner == owner
}
