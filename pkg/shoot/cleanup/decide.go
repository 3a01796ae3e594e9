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

// action is what is done to an object.
type action int

const (
	actionWait action = iota
	actionDelete
	// actionFinalize removes the finalizers, and ends at once what has still time to end.
	actionFinalize
)

// decide returns what is done to an object now. It is pure.
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

// finalizedAt returns when an object that is being deleted loses its finalizers. The time of its deletion includes that which its programs have to end.
func finalizedAt(kind Kind, object *metav1.PartialObjectMetadata) time.Time {
	grace := time.Duration(ptr.Deref(object.DeletionGracePeriodSeconds, 0)) * time.Second
	return object.DeletionTimestamp.Add(kind.FinalizeAfter - grace)
}

// blocks reports whether the clean-up waits for an object. What is created long after it began is deleted, but not waited for: something elsewhere may
// create it repeatedly.
func blocks(kind Kind, object *metav1.PartialObjectMetadata, began time.Time) bool {
	return !object.CreationTimestamp.After(began.Add(kind.FinalizeAfter))
}

const (
	// namesShown is how many objects of a kind a description names.
	namesShown = 3
	// bytesShown is how long a description is at most.
	bytesShown = 1024
)

// leftovers describe what is left of each kind.
type leftovers struct {
	texts []string
	// finalized is when the first of them loses its finalizers; zero if that is not known.
	finalized time.Time
}

// add adds what is left of a kind.
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

// String says what is left; empty for nothing.
func (l *leftovers) String() string {
	if len(l.texts) == 0 {
		return ""
	}
	text := "in the cluster are left " + strings.Join(l.texts, "; ")
	if len(text) > bytesShown {
		text = strings.ToValidUTF8(text[:bytesShown], "") + "…"
	}
	if !l.finalized.IsZero() {
		text += "; finalizers are removed from " + l.finalized.UTC().Format(time.RFC3339) + " on"
	}
	return text
}
