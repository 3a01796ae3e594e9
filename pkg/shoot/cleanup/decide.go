package cleanup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// action is an action for one object.
type action int

const (
	actionWait action = iota
	actionDelete
	// actionFinalize removes the finalizers, and ends the grace period.
	actionFinalize
)

// decide returns the action for an object. It is a pure function.
func decide(kind Kind, object *metav1.PartialObjectMetadata, now time.Time) action {
	switch {
	case object.DeletionTimestamp == nil:
		return actionDelete
	case now.Before(finalizedAt(kind, object)):
		return actionWait
	case len(object.Finalizers) == 0 && ptr.Deref(object.DeletionGracePeriodSeconds, 0) == 0:
		return actionWait // the API server is about to remove it
	}
	return actionFinalize
}

// finalizedAt returns when the finalizers of an object that is being deleted are removed. Its deletion timestamp includes the grace period.
func finalizedAt(kind Kind, object *metav1.PartialObjectMetadata) time.Time {
	grace := time.Duration(ptr.Deref(object.DeletionGracePeriodSeconds, 0)) * time.Second
	return object.DeletionTimestamp.Add(kind.FinalizeAfter - grace)
}

// blocks reports whether the clean-up waits for an object. Objects that are created long after the start are deleted
// without waiting, because a controller outside the cluster may create them repeatedly.
func blocks(kind Kind, object *metav1.PartialObjectMetadata, began time.Time) bool {
	return !object.CreationTimestamp.After(began.Add(kind.FinalizeAfter))
}

const (
	// namesShown limits the number of objects of a kind in a description.
	namesShown = 3
	// bytesShown limits the length of a description.
	bytesShown = 1024
)

// leftovers describes the remaining objects.
type leftovers struct {
	texts []string
	// finalized is when the first finalizers are removed, or zero if that is not known.
	finalized time.Time
}

// add adds the remaining objects of a kind.
func (l *leftovers) add(kind Kind, objects []metav1.PartialObjectMetadata) {
	if len(objects) == 0 {
		return
	}
	slices.SortFunc(objects, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var names []string
	for i := range objects[:min(len(objects), namesShown)] {
		object := &objects[i]
		name := object.Name
		if object.Namespace != "" {
			name = object.Namespace + "/" + name
		}
		if len(object.Finalizers) > 0 {
			name += " (finalizers " + strings.Join(object.Finalizers, ", ") + ")"
		}
		names = append(names, name)
	}
	text := kind.Kind + " " + strings.Join(names, ", ")
	if more := len(objects) - namesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	l.texts = append(l.texts, text)
	for i := range objects {
		if objects[i].DeletionTimestamp == nil || len(objects[i].Finalizers) == 0 {
			continue
		}
		if at := finalizedAt(kind, &objects[i]); l.finalized.IsZero() || at.Before(l.finalized) {
			l.finalized = at
		}
	}
}

// String describes the remaining objects. It is empty if there are none.
func (l *leftovers) String() string {
	if len(l.texts) == 0 {
		return ""
	}
	text := "objects left in the cluster: " + strings.Join(l.texts, "; ")
	if len(text) > bytesShown {
		text = strings.ToValidUTF8(text[:bytesShown], "") + "…"
	}
	if !l.finalized.IsZero() {
		text += "; finalizers are removed after " + l.finalized.UTC().Format(time.RFC3339)
	}
	return text
}
