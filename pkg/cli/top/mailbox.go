package top

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// changes are collected changes.
type changes struct {
	// replaced is set if items are all existing items.
	replaced bool
	// items are the changed items. They are nil for deleted ManagedResources.
	items map[types.NamespacedName]*item
	// read is the number of items read so far by the first list request.
	read int
	// lost is the error of the last request. It is nil if the cluster is reachable.
	lost error
}

// mailbox collects changes until they are taken.
type mailbox struct {
	// news contains an element if there are changes.
	news chan struct{}

	mu      sync.Mutex
	changes changes
	// works is set after a watch has started once. Before that, a refused request is final, and fails is its error.
	works bool
	fails error
}

func newMailbox() *mailbox {
	return &mailbox{news: make(chan struct{}, 1)}
}

// take returns the changes since the last call, or the error if the ManagedResources cannot be watched.
func (m *mailbox) take() (changes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.changes
	m.changes.replaced, m.changes.items = false, nil
	return taken, m.fails
}

// change records a change.
func (m *mailbox) change(note func(*changes)) {
	m.mu.Lock()
	note(&m.changes)
	m.mu.Unlock()
	select {
	case m.news <- struct{}{}:
	default: // a signal is pending already
	}
}

// OnSynced records that the cluster is reachable.
func (m *mailbox) OnSynced() {
	m.change(func(c *changes) { c.lost, c.read, m.works = nil, 0, true })
}

// OnProgress records that more items were read.
func (m *mailbox) OnProgress(count int) {
	m.change(func(c *changes) { c.read += count })
}

// OnError records a failed request.
func (m *mailbox) OnError(err error) {
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || console.HasNoKind(err)
	m.change(func(c *changes) {
		c.lost = err
		if refused && !m.works {
			m.fails = err
		}
	})
}

// Add stores an item. It implements cache.ReflectorStore, like the methods below.
func (m *mailbox) Add(object any) error { return m.put(object, false) }

// Update stores a changed item.
func (m *mailbox) Update(object any) error { return m.put(object, false) }

// Delete records the deletion of an item.
func (m *mailbox) Delete(object any) error { return m.put(object, true) }

func (m *mailbox) put(object any, gone bool) error {
	is, isItem := object.(*item)
	if !isItem {
		return fmt.Errorf("watch ManagedResources: received a %T", object)
	}
	m.change(func(c *changes) {
		if c.items == nil {
			c.items = map[types.NamespacedName]*item{}
		}
		if c.items[is.FullName()] = is; gone {
			c.items[is.FullName()] = nil
		}
	})
	return nil
}

// Replace replaces all items.
func (m *mailbox) Replace(objects []any, _ string) error {
	all := make(map[types.NamespacedName]*item, len(objects))
	for _, object := range objects {
		if is, isItem := object.(*item); isItem {
			all[is.FullName()] = is
		}
	}
	m.change(func(c *changes) { c.replaced, c.items = true, all })
	return nil
}

// Resync does nothing, because no caller needs it.
func (m *mailbox) Resync() error { return nil }
