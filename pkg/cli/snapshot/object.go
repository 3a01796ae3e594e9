// Package snapshot shows objects of the target cluster as they are at a moment: how they are, and what they own.
package snapshot

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Object is what is known of an object.
type Object struct {
	object.Ref
	// Presence says whether it is there; Err why that, or its kind, is not known.
	Presence live.Presence
	Err      error
	// Meta is the metadata of an object that is there.
	Meta metav1.ObjectMeta
	// Body is the object itself; nil if its metadata is all that is read of its kind.
	Body runtime.Object
	// Verdict is how it is, as the resource-manager finds it. Checked says that there is a rule for it.
	Verdict health.Verdict
	Checked bool
	// Detail is a few words on how it is, empty if there is nothing to say.
	Detail string
	// Children are what it owns, by kind and name.
	Children []*Object
}

// Health is how an object is, in a word.
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

// Healths are all words, the gravest first.
var Healths = []Health{Missing, Unhealthy, Unseen, Deleting, Progressing, Unchecked, Healthy, Present}

// Health returns how an object is.
func (o *Object) Health() Health {
	switch {
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

// Why says what is wrong with an object, or what is under way; empty if nothing is.
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
		if len(o.Meta.Finalizers) > 0 {
			return "its finalizers block the deletion: " + strings.Join(o.Meta.Finalizers, ", ")
		}
		return "it is being deleted"
	case Unchecked:
		return o.Verdict.Err
	}
	return ""
}

// Style is how a word is shown.
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

// IsWell reports whether nothing is wrong with an object, and nothing under way.
func (h Health) IsWell() bool { return h == Healthy || h == Present || h == Unchecked }

// Created returns when an object was created; zero if it is not there.
func (o *Object) Created() time.Time { return o.Meta.CreationTimestamp.Time }

// Title returns kind and name for people, with the namespace if it is another one than that of what it is shown below.
func (o *Object) Title(namespace string) string {
	if o.Namespace == "" || o.Namespace == namespace {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Walk calls a function for an object and all below it.
func (o *Object) Walk(visit func(*Object)) {
	visit(o)
	for _, child := range o.Children {
		child.Walk(visit)
	}
}
