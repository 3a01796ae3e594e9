package ui

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

// Row is a ManagedResource in the list.
type Row struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	State     state.Word `json:"state"`
	// Since is the time when the state began, and Created the creation time, as Unix times in seconds. They are 0 if
	// unknown.
	Since   int64  `json:"since,omitempty"`
	Created int64  `json:"created,omitempty"`
	Class   string `json:"class"`
	// Objects is the number of objects in the inventory.
	Objects int `json:"objects"`
	// Message is the first line of the problem.
	Message string `json:"message,omitempty"`
	// Version is the resourceVersion. Pages read details again when it changes.
	Version string `json:"version"`
}

func rowOf(mr *resourcesv1alpha1.ManagedResource) Row {
	is := state.Of(mr)
	return Row{
		Namespace: mr.Namespace, Name: mr.Name, State: is.Word, Since: seconds(is.Since), Created: seconds(mr.CreationTimestamp.Time),
		Class: state.ClassOf(mr), Objects: len(mr.Status.Resources), Message: shorten(is.Headline()), Version: mr.ResourceVersion,
	}
}

// record contains the row of a ManagedResource and the data to compare with a later version. Complete
// ManagedResources would take too
// much memory. Records are immutable.
type record struct {
	watch.Meta
	row        Row
	generation int64
	conditions []Condition
	entries    []entry
	writes     []write
	// cached is the ManagedResource in the cache of the controllers, which replaces entries. It is nil without such a
	// cache.
	cached *resourcesv1alpha1.ManagedResource
	// sequence is the sequence of the store when the record was stored.
	sequence uint64
}

// Condition is a condition of a ManagedResource.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Since   int64  `json:"since,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func recordOf(mr *resourcesv1alpha1.ManagedResource) *record {
	return &record{
		Meta: watch.MetaOf(mr), row: rowOf(mr), generation: mr.Generation, conditions: conditionsOf(mr), entries: entriesOf(mr),
		writes: writesOf(mr),
	}
}

func conditionsOf(mr *resourcesv1alpha1.ManagedResource) []Condition {
	var conditions []Condition
	for _, each := range mr.Status.Conditions {
		if each.Type == resourcesv1alpha1.Ready {
			continue // it summarizes the others
		}
		conditions = append(conditions, Condition{
			Type: string(each.Type), Status: string(each.Status), Since: seconds(each.LastTransitionTime.Time), Reason: each.Reason,
			Message: shorten(each.Message),
		})
	}
	return conditions
}

// DeepCopyObject implements runtime.Object. Records are immutable, so that a record is its own copy.
func (r *record) DeepCopyObject() runtime.Object { return r }

// longest is the maximum length of a text in bytes.
const longest = 1024

// shorten returns a text up to the maximum length.
func shorten(text string) string {
	if len(text) <= longest {
		return strings.Clone(text) // do not keep the text in memory that it is a part of
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// conditionOf returns the condition of a type. It returns nil if there is none.
func conditionOf(conditions []Condition, name string) *Condition {
	i := slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == name })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
