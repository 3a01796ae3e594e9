package top

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

// item is the summary of a ManagedResource.
type item struct {
	watch.Meta
	is    state.State
	class string
	// message is the first line of the problem.
	message string
	// objects is the number of objects in the inventory.
	objects int
	// text is the text that filters search, in lower case.
	text string
}

// newItem summarizes a ManagedResource.
func newItem(mr *resourcesv1alpha1.ManagedResource) *item {
	is := state.Of(mr)
	class, message := state.ClassOf(mr), is.Headline()
	is.Message = ""
	return &item{
		Meta: watch.MetaOf(mr), is: is, class: class, message: message, objects: len(mr.Status.Resources),
		text: strings.ToLower(strings.Join([]string{mr.Namespace + "/" + mr.Name, string(is.Word), class, message}, " ")),
	}
}

// DeepCopyObject implements runtime.Object. Items are immutable, so that an item is its own copy.
func (i *item) DeepCopyObject() runtime.Object { return i }

// order is the sort order of items.
type order int

const (
	// byState sorts the most severe state first.
	byState order = iota
	// bySince sorts the last change first.
	bySince
	byName
)

// orderNames are the names of the orders in messages.
var orderNames = [...]string{byState: "state", bySince: "last change", byName: "name"}

func (o order) compare(a, b *item) int {
	first := 0
	switch o {
	case byState:
		first = cmp.Compare(a.is.Word.Rank(), b.is.Word.Rank())
	case bySince:
		first = b.is.Since.Compare(a.is.Since)
	}
	return cmp.Or(first, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// filter selects the items to show.
type filter struct {
	// words must all be contained in the text of an item.
	words string
	// unwell omits items that are ready or suspended.
	unwell bool
}

func (f filter) isEmpty() bool { return f.words == "" && !f.unwell }

func (f filter) includes(i *item) bool {
	if f.unwell && i.is.Word.IsWell() {
		return false
	}
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(f.words)), func(word string) bool { return !strings.Contains(i.text, word) })
}
