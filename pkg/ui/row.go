package ui

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

// Row is what the list shows of a ManagedResource.
type Row struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	State     state.Word `json:"state"`
	// Since is when the state began, Created when the ManagedResource was created, in seconds since 1970; 0 if it is not known.
	Since   int64  `json:"since,omitempty"`
	Created int64  `json:"created,omitempty"`
	Class   string `json:"class"`
	// Objects is how many are in the inventory.
	Objects int `json:"objects"`
	// Message is the first line of what is wrong.
	Message string `json:"message,omitempty"`
	// Version changes with everything that may change what is read of it.
	Version string `json:"version"`
}

func rowOf(mr *resourcesv1alpha1.ManagedResource) Row {
	is := state.Of(mr)
	return Row{
		Namespace: mr.Namespace, Name: mr.Name, State: is.Word, Since: seconds(is.Since), Created: seconds(mr.CreationTimestamp.Time),
		Class: state.ClassOf(mr), Objects: len(mr.Status.Resources), Message: shorten(is.Headline()), Version: mr.ResourceVersion,
	}
}

// record is what is kept of a ManagedResource: the row, and what is compared with a later version. Of many, what they are made of
// would take too much memory. It is never changed.
type record struct {
	watch.Meta
	row        Row
	generation int64
	conditions []Condition
	entries    []entry
	writes     []write
	// cached is the ManagedResource in the cache of the controllers, so that the entries need not be kept; nil if there is none.
	cached *resourcesv1alpha1.ManagedResource
	// sequence is when the record was taken in, among all of the store.
	sequence uint64
}

// Condition is one of a ManagedResource.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Since   int64  `json:"since,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func recordOf(mr *resourcesv1alpha1.ManagedResource) *record {
	return &record{
		Meta: watch.MetaOf(mr), row: rowOf(mr), generation: mr.Generation, conditions: conditionsOf(mr), entries: entriesOf(mr), writes: writesOf(mr),
	}
}

func conditionsOf(mr *resourcesv1alpha1.ManagedResource) []Condition {
	var conditions []Condition
	for _, each := range mr.Status.Conditions {
		if each.Type == resourcesv1alpha1.Ready {
			continue // it sums up the others
		}
		conditions = append(conditions, Condition{
			Type: string(each.Type), Status: string(each.Status), Since: seconds(each.LastTransitionTime.Time), Reason: each.Reason,
			Message: shorten(each.Message),
		})
	}
	return conditions
}

// DeepCopyObject makes it an object for client-go. A record is never changed, so it is its own copy.
func (r *record) DeepCopyObject() runtime.Object { return r }

// longest is how many bytes of a text are kept.
const longest = 1024

// shorten cuts a text that is too long to be kept.
func shorten(text string) string {
	if len(text) <= longest {
		return strings.Clone(text) // not to keep what it was a part of
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// conditionOf returns the condition of a type; nil for none.
func conditionOf(conditions []Condition, name string) *Condition {
	i := slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == name })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
