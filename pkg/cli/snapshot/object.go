// Package snapshot reads the current state of objects in the target cluster, with their health and the objects that
// they own.
package snapshot

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/warnings"
)

// Object is the known state of an object.
type Object struct {
	object.Ref
	// Presence reports whether the object exists. Err is the reason why this, or its kind, is not known.
	Presence live.Presence
	Err      error
	// Meta is the metadata of an existing object.
	Meta metav1.ObjectMeta
	// Body is the object itself. It is nil if only the metadata of its kind is read.
	Body runtime.Object
	// Verdict is the health of the object, computed as in the resource-manager, except that a Pod whose containers crash
	// is unhealthy. Checked is set if there is a check for its kind.
	Verdict health.Verdict
	Checked bool
	// Finished is set if the object is a Job that has finished, and may have been deleted by its TTL.
	Finished bool
	// Detail describes the state in a few words. It may be empty.
	Detail string
	// Children are the objects that it owns, sorted by kind and name.
	Children []*Object
}

// Health is the health of an object in one word.
type Health string

// The words.
const (
	Missing     Health = "Missing"
	Unhealthy   Health = "Unhealthy"
	Unseen      Health = "Unseen"
	Deleting    Health = "Deleting"
	Progressing Health = "Progressing"
	Healthy     Health = "Healthy"
	Unchecked   Health = "Unchecked"
	Present     Health = "Present"
)

// Healths are all words, the most severe first.
var Healths = []Health{Missing, Unhealthy, Unseen, Deleting, Progressing, Unchecked, Healthy, Present}

// Health returns the health of an object.
func (o *Object) Health() Health {
	switch {
	case o.Presence == live.Absent && o.Finished:
		return Healthy
	case o.Presence == live.Absent || o.Presence == live.KindNotServed:
		return Missing
	case o.Presence == live.Unknown:
		return Unseen
	case o.Meta.DeletionTimestamp != nil:
		return Deleting
	case resourcesv1alpha1.Truthy(o.Meta.Annotations[resourcesv1alpha1.AnnotationSkipHealthCheck]):
		return Unchecked
	case o.Verdict.Unhealthy != "" && !o.Verdict.Unobserved:
		return Unhealthy
	case o.Verdict.Progressing != "" || o.Verdict.Unobserved:
		return Progressing
	case o.Verdict.Err != "":
		return Unchecked
	case o.Checked:
		return Healthy
	}
	return Present
}

// Why returns the problem of an object, or its progress. It is empty if there is none.
func (o *Object) Why() string {
	switch o.Health() {
	case Missing:
		if o.Err != nil {
			return o.Err.Error()
		}
		return "it does not exist"
	case Unseen:
		return o.Err.Error()
	case Unhealthy:
		return o.Verdict.Unhealthy
	case Progressing:
		return cmp.Or(o.Verdict.Progressing, o.Verdict.Unhealthy)
	case Deleting:
		return o.deletion()
	case Unchecked:
		return o.Verdict.Err
	}
	return ""
}

// deletion returns why an object that is being deleted still exists.
func (o *Object) deletion() string {
	var reasons []string
	if len(o.Meta.Finalizers) > 0 {
		reasons = append(reasons, "its finalizers block the deletion: "+strings.Join(o.Meta.Finalizers, ", "))
	}
	if namespace, ok := o.Body.(*corev1.Namespace); ok {
		if reason := warnings.OfNamespace(namespace); reason != "" {
			reasons = append(reasons, "it is being deleted: "+reason)
		}
	}
	return cmp.Or(strings.Join(reasons, "; "), "it is being deleted")
}

// Style returns the display style of a word.
func (h Health) Style() screen.Style {
	switch h {
	case Missing, Unhealthy:
		return screen.Bad
	case Deleting, Progressing:
		return screen.Busy
	case Healthy:
		return screen.Good
	case Unseen, Unchecked:
		return screen.Faint
	}
	return screen.Plain
}

// IsWell reports whether an object has no problem and no change in progress.
func (h Health) IsWell() bool { return h == Healthy || h == Present || h == Unchecked }

// Created returns the creation time of an object. It is zero if the object does not exist.
func (o *Object) Created() time.Time { return o.Meta.CreationTimestamp.Time }

// Title returns kind and name, with the namespace if it differs from the given one.
func (o *Object) Title(namespace string) string {
	if o.Namespace == "" || o.Namespace == namespace {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Walk calls a function for an object and all its descendants.
func (o *Object) Walk(visit func(*Object)) {
	visit(o)
	for _, child := range o.Children {
		child.Walk(visit)
	}
}
