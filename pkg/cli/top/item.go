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

// item is what is kept of a ManagedResource.
type item struct {
	watch.Meta
	is    state.State
	class string
	// message is the first line of what is wrong.
	message string
	// objects is how many are in the inventory.
	objects int
	// text is what a filter looks at, in lower case.
	text string
}

// newItem sums a ManagedResource up.
func newItem(mr *resourcesv1alpha1.ManagedResource) *item {
	is := state.Of(mr)
	class, message := state.ClassOf(mr), is.Headline()
	is.Message = ""
	return &item{
		Meta: watch.MetaOf(mr), is: is, class: class, message: message, objects: len(mr.Status.Resources),
		text: strings.ToLower(strings.Join([]string{mr.Namespace + "/" + mr.Name, string(is.Word), class, message}, " ")),
	}
}

// DeepCopyObject makes it an object for client-go. An item is never changed, so it is its own copy.
func (i *item) DeepCopyObject() runtime.Object { return i }

// order is how items are sorted.
type order int

const (
	// byState has the gravest first.
	byState order = iota
	// bySince has what changed last first.
	bySince
	byName
)

// orderNames are what the orders are called.
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

// filter says which items are shown.
type filter struct {
	// words must all occur in the text of an item.
	words string
	// unwell leaves out what is ready or suspended.
	unwell bool
}

func (f filter) isEmpty() bool { return f.words == "" && !f.unwell }

func (f filter) includes(i *item) bool {
	if f.unwell && i.is.Word.IsWell() {
		return false
	}
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(f.words)), func(word string) bool { return !strings.Contains(i.text, word) })
}
