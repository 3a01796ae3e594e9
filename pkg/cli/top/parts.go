package top

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

// parts combines several watches. It forwards items after each of the watches has read its part.
type parts struct {
	// Sink receives the combined results. Calls are serialized.
	watch.Sink

	mu sync.Mutex
	// items are the items of each watch. They are nil until the watch has read them.
	items []map[types.NamespacedName]any
}

func newParts(sink watch.Sink, count int) *parts {
	return &parts{Sink: sink, items: make([]map[types.NamespacedName]any, count)}
}

// part returns the sink of a watch.
func (p *parts) part(index int) watch.Sink { return &part{parts: p, index: index} }

// whole reports whether each watch has read its part.
func (p *parts) whole() bool {
	return !slices.ContainsFunc(p.items, func(items map[types.NamespacedName]any) bool { return items == nil })
}

// part is the sink of one of several watches.
type part struct {
	*parts
	index int
}

// locked runs a function while no other watch calls the sink.
func (p *part) locked(run func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return run()
}

// OnSynced implements watch.Sink, like the methods below.
func (p *part) OnSynced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Sink.OnSynced()
}

// OnProgress forwards the number of items read.
func (p *part) OnProgress(count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Sink.OnProgress(count)
}

// OnError forwards a failed request.
func (p *part) OnError(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Sink.OnError(err)
}

// Add forwards an item.
func (p *part) Add(object any) error { return p.put(object, p.Sink.Add) }

// Update forwards a changed item.
func (p *part) Update(object any) error { return p.put(object, p.Sink.Update) }

func (p *part) put(object any, pass func(any) error) error {
	is, isItem := object.(*item)
	if !isItem {
		return fmt.Errorf("watch ManagedResources: received a %T", object)
	}
	return p.locked(func() error {
		if p.items[p.index] != nil {
			p.items[p.index][is.FullName()] = object
		}
		if !p.whole() {
			return nil
		}
		return pass(object)
	})
}

// Delete forwards the deletion of an item.
func (p *part) Delete(object any) error {
	is, isItem := object.(*item)
	if !isItem {
		return fmt.Errorf("watch ManagedResources: received a %T", object)
	}
	return p.locked(func() error {
		delete(p.items[p.index], is.FullName())
		if !p.whole() {
			return nil
		}
		return p.Sink.Delete(object)
	})
}

// Replace replaces all items of a watch.
func (p *part) Replace(objects []any, version string) error {
	items := make(map[types.NamespacedName]any, len(objects))
	for _, object := range objects {
		if is, isItem := object.(*item); isItem {
			items[is.FullName()] = object
		}
	}
	return p.locked(func() error {
		p.items[p.index] = items
		if !p.whole() {
			return nil
		}
		var all []any
		for _, each := range p.items {
			all = slices.AppendSeq(all, maps.Values(each))
		}
		return p.Sink.Replace(all, version)
	})
}
