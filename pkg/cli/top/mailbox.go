package top

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// changes is what has changed.
type changes struct {
	// replaced says that items are all that there are.
	replaced bool
	// items are those that changed, or nil for those that are gone.
	items map[types.NamespacedName]*item
	// read is how many were read so far, before all were read once.
	read int
	// lost is why the cluster cannot be reached; nil if it can be.
	lost error
}

// mailbox keeps what has changed until it is taken.
type mailbox struct {
	// news has something in it when there are changes.
	news chan struct{}

	mu      sync.Mutex
	changes changes
	// works says that a watch was begun once. Before that, what the cluster refuses is refused for good, which fails says.
	works bool
	fails error
}

func newMailbox() *mailbox {
	return &mailbox{news: make(chan struct{}, 1)}
}

// take returns what has changed since it was called last, or why there is nothing to follow.
func (m *mailbox) take() (changes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.changes
	m.changes.replaced, m.changes.items = false, nil
	return taken, m.fails
}

// change notes something.
func (m *mailbox) change(note func(*changes)) {
	m.mu.Lock()
	note(&m.changes)
	m.mu.Unlock()
	select {
	case m.news <- struct{}{}:
	default: // that there is news is known
	}
}

// OnSynced records that the cluster answers.
func (m *mailbox) OnSynced() {
	m.change(func(c *changes) { c.lost, c.read, m.works = nil, 0, true })
}

// OnProgress records how many more were read.
func (m *mailbox) OnProgress(count int) {
	m.change(func(c *changes) { c.read += count })
}

// OnError records that a request failed.
func (m *mailbox) OnError(err error) {
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || console.HasNoKind(err)
	m.change(func(c *changes) {
		c.lost = err
		if refused && !m.works {
			m.fails = err
		}
	})
}

// Add stores an item. It implements cache.ReflectorStore, as do the methods below.
func (m *mailbox) Add(object any) error { return m.put(object, false) }

// Update takes in an item that has changed.
func (m *mailbox) Update(object any) error { return m.put(object, false) }

// Delete takes in that an item is gone.
func (m *mailbox) Delete(object any) error { return m.put(object, true) }

func (m *mailbox) put(object any, gone bool) error {
	is, isItem := object.(*item)
	if !isItem {
		return fmt.Errorf("a %T was watched instead of a ManagedResource", object)
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

// Replace takes in all that there are.
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

// Resync does nothing: no caller needs it.
func (m *mailbox) Resync() error { return nil }
