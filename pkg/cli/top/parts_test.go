package top

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestParts checks that two watches are shown as one, after both have read their initial lists.
func TestParts(t *testing.T) {
	at := func(namespace, name string) *item {
		is := &item{}
		is.Namespace, is.Name = namespace, name
		return is
	}
	box := newMailbox()
	joined := newParts(box, 2)
	first, second := joined.part(0), joined.part(1)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var shown map[types.NamespacedName]*item
	take := func(want ...string) {
		t.Helper()
		taken, err := box.take()
		must(err)
		if taken.replaced {
			shown = taken.items
		} else {
			for name, is := range taken.items {
				if is == nil {
					delete(shown, name)
				} else {
					shown[name] = is
				}
			}
		}
		var names []string
		for name := range shown {
			names = append(names, name.String())
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("got %v, want %v", names, want)
		}
	}
	must(first.Replace([]any{at("garden", "one")}, "1"))
	must(first.Add(at("garden", "two")))
	take()
	must(second.Replace([]any{at("shoot", "a"), at("shoot", "b")}, "2"))
	take("garden/one", "garden/two", "shoot/a", "shoot/b")
	must(first.Delete(at("garden", "one")))
	must(second.Update(at("shoot", "c")))
	take("garden/two", "shoot/a", "shoot/b", "shoot/c")
	must(second.Replace([]any{at("shoot", "b")}, "3"))
	take("garden/two", "shoot/b")
	if err := first.Add("text"); err == nil {
		t.Error("a string is accepted as a ManagedResource")
	}
}
