package top

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// model is the state of the user interface. It uses no client, clock or terminal.
type model struct {
	// scope describes the watched ManagedResources, such as "in all namespaces". host is the address of the cluster.
	scope, host string
	// everywhere is set if they are in several namespaces.
	everywhere    bool
	width, height int
	now           time.Time

	// items are all existing items. loaded is set after they were read once. Until then, read is the number of items
	// read so far.
	items  map[types.NamespacedName]*item
	loaded bool
	read   int
	// lost is the error if the cluster is unreachable since lostSince. It is nil if the cluster is reachable.
	lost      error
	lostSince time.Time

	// owner is the Shoot or Seed of the ManagedResources when it was last read. It is nil for none. ownerReading is set
	// while it is
	// being read. ownerLost is the error of the last read.
	owner        *fleet.Owner
	ownerReadAt  time.Time
	ownerReading bool
	ownerLost    error

	filter filter
	order  order
	// shown are the items that match the filter, in order.
	shown []*item
	// cursor is the index of the selected item in shown, and chosen is its name. Until the user moves, this is the first
	// item.
	cursor int
	chosen types.NamespacedName
	moved  bool
	// offset is the index of the first item on the screen.
	offset int

	// page is the opened ManagedResource. It is nil for the list.
	page *page
	help bool
	// typing is set while keys edit the filter.
	typing bool
	// asked is the ManagedResource whose reconciliation the user must confirm. It is nil for none.
	asked *types.NamespacedName
	// status is the last message.
	status string
}

// details are the details of one ManagedResource.
type details interface {
	// Print prints the details as text.
	Print(to screen.Screen, now time.Time) error
}

// page shows the details of one ManagedResource.
type page struct {
	name    types.NamespacedName
	details details
	err     error
	// reading is set while the details are being read. readAt is the time of the last read.
	reading bool
	readAt  time.Time
	// stale is set if the ManagedResource changed after the last read.
	stale  bool
	offset int
	// lines are the formatted details for a width at a point in time.
	lines [][]screen.Span
	width int
	at    time.Time
}

// layOut returns the lines of the page.
func (m *model) layOut() [][]screen.Span {
	p := m.page
	if p.details == nil || p.lines != nil && p.width == m.width && p.at.Equal(m.now) {
		return p.lines
	}
	lines, err := screen.Lines(m.width, func(to screen.Screen) error { return p.details.Print(to, m.now) })
	if err != nil {
		p.err = err
	}
	p.lines, p.width, p.at = lines, m.width, m.now
	return lines
}

// scroll moves the page to a line. It does not scroll beyond the last screen.
func (m *model) scroll(to int) {
	m.page.offset = max(min(to, len(m.layOut())-m.pageRows()), 0)
}

// pageRows is the number of lines of a page on the screen.
func (m *model) pageRows() int { return max(m.height-linesOfPage, 1) }

// readAgain is the interval at which details are read again if the ManagedResource is not well, because its Pods
// change without
// the ManagedResource. readLeast is the minimum interval for a ManagedResource that changes often.
const (
	readAgain = 5 * time.Second
	readLeast = time.Second
)

// needsRead returns the ManagedResource whose details must be read now.
func (m *model) needsRead() (types.NamespacedName, bool) {
	p := m.page
	if p == nil || p.reading || m.lost != nil && !p.readAt.IsZero() || m.items[p.name] == nil && m.loaded {
		return types.NamespacedName{}, false
	}
	age := m.now.Sub(p.readAt)
	well := m.items[p.name] != nil && m.items[p.name].is.Word.IsWell()
	return p.name, p.readAt.IsZero() || p.stale && age >= readLeast || !well && age >= readAgain
}

// startRead records that the details are being read.
func (m *model) startRead() { m.page.reading, m.page.stale = true, false }

// finishRead stores the details, unless another ManagedResource was opened in the meantime.
func (m *model) finishRead(name types.NamespacedName, read details, err error) {
	p := m.page
	if p == nil || p.name != name {
		return
	}
	p.reading, p.readAt, p.err = false, m.now, err
	if err == nil {
		p.details, p.lines = read, nil
		m.scroll(p.offset)
	}
}

// ownerAgain is the interval at which a Shoot or Seed is read.
const ownerAgain = 2 * time.Second

// startOwnerRead reports whether the Shoot or Seed must be read now. If so, it records that the Shoot or Seed is being
// read.
func (m *model) startOwnerRead() bool {
	if m.owner == nil || m.ownerReading || m.now.Sub(m.ownerReadAt) < ownerAgain {
		return false
	}
	m.ownerReading = true
	return true
}

// finishOwnerRead stores the Shoot or Seed, or the error.
func (m *model) finishOwnerRead(owner *fleet.Owner, err error) {
	m.ownerReading, m.ownerReadAt, m.ownerLost = false, m.now, err
	if err == nil {
		m.owner = owner
	}
}

// take applies changes.
func (m *model) take(changes changes) {
	if changes.replaced || m.items == nil {
		m.items = map[types.NamespacedName]*item{}
	}
	m.loaded = m.loaded || changes.replaced
	m.read = changes.read
	if m.lost == nil && changes.lost != nil {
		m.lostSince = m.now
	}
	m.lost = changes.lost
	for name, is := range changes.items {
		if m.page != nil && m.page.name == name {
			m.page.stale = true
		}
		if is == nil {
			delete(m.items, name)
			continue
		}
		m.items[name] = is
	}
	if changes.replaced || len(changes.items) > 0 {
		m.sort()
	}
}

// sort recomputes the shown items. The selected item stays selected.
func (m *model) sort() {
	m.shown = make([]*item, 0, len(m.items))
	for _, is := range m.items {
		if m.filter.includes(is) {
			m.shown = append(m.shown, is)
		}
	}
	slices.SortFunc(m.shown, m.order.compare)
	if !m.moved {
		m.choose(0)
		return
	}
	at := slices.IndexFunc(m.shown, func(is *item) bool { return is.FullName() == m.chosen })
	if at < 0 {
		at = m.cursor
	}
	m.choose(at)
}

// choose selects the item at an index, or the nearest one, and scrolls to it.
func (m *model) choose(at int) {
	m.cursor = max(min(at, len(m.shown)-1), 0)
	if len(m.shown) > 0 {
		m.chosen = m.shown[m.cursor].FullName()
	}
	m.offset = scrollTo(m.offset, m.cursor, len(m.shown), m.rows())
}

// scrollTo returns the index of the first row on the screen, so that the row at an index is visible.
func scrollTo(offset, at, count, rows int) int {
	offset = max(min(offset, at), at-rows+1)
	return max(min(offset, count-rows), 0)
}

// resize sets the size of the terminal.
func (m *model) resize(width, height int) {
	m.width, m.height = width, height
	m.choose(m.cursor)
	if m.page != nil {
		m.scroll(m.page.offset)
	}
}

// Number of lines around the rows of the list, and around a page.
const (
	linesOfList = 4 // title, counts, header of the table, keys
	linesOfPage = 2 // title, keys
)

// rows is the number of items on the screen.
func (m *model) rows() int { return max(m.height-linesOfList-len(m.viewOwner()), 1) }

// counts returns the number of items in each state.
func (m *model) counts() map[state.Word]int {
	counts := map[state.Word]int{}
	for _, is := range m.items {
		counts[is.is.Word]++
	}
	return counts
}
