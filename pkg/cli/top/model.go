package top

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// model is all that is shown. It decides alone: no client, no clock, no terminal.
type model struct {
	// scope says which ManagedResources are meant, such as "in all namespaces"; host is the address of the cluster.
	scope, host string
	// everywhere says that they are of several namespaces.
	everywhere    bool
	width, height int
	now           time.Time

	// items are all that there are; loaded says that all were read once, read how many have been until then.
	items  map[types.NamespacedName]*item
	loaded bool
	read   int
	// lost is why the cluster cannot be reached, since when; nil if it can be.
	lost      error
	lostSince time.Time

	// owner is the Shoot or Seed that they are behind, as it was read last; nil for none. ownerReading says that it is being read, ownerLost why it
	// could not be read.
	owner        *fleet.Owner
	ownerReadAt  time.Time
	ownerReading bool
	ownerLost    error

	filter filter
	order  order
	// shown are the items that the filter includes, in order.
	shown []*item
	// cursor is the place of the chosen item in shown; chosen is its name. Until a person chooses, that is the first one.
	cursor int
	chosen types.NamespacedName
	moved  bool
	// offset is the place of the first item on the screen.
	offset int

	// page is what is opened; nil for the list.
	page *page
	help bool
	// typing says that keys are for the filter.
	typing bool
	// asked is what a person is asked whether to reconcile; nil for nothing.
	asked *types.NamespacedName
	// status is what was said last.
	status string
}

// details is what is read of one ManagedResource.
type details interface {
	// Print writes it for people.
	Print(to screen.Screen, now time.Time) error
}

// page is one ManagedResource in detail.
type page struct {
	name    types.NamespacedName
	details details
	err     error
	// reading says that it is being read, readAt when it was last.
	reading bool
	readAt  time.Time
	// stale says that the ManagedResource changed after it was read.
	stale  bool
	offset int
	// lines are the details as they were laid out for a width at a time.
	lines [][]screen.Span
	width int
	at    time.Time
}

// layOut returns the lines of what is opened.
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

// scroll has the page begin at a line, or at the nearest one that leaves no room below the last line.
func (m *model) scroll(to int) {
	m.page.offset = max(min(to, len(m.layOut())-m.pageRows()), 0)
}

// pageRows is how many lines of an opened page are on the screen.
func (m *model) pageRows() int { return max(m.height-linesOfPage, 1) }

// readAgain is how soon what is opened is read again that is not well: its Pods change without the ManagedResource.
// readLeast is how soon it is at least, however often the ManagedResource changes.
const (
	readAgain = 5 * time.Second
	readLeast = time.Second
)

// wantsRead returns what has to be read now.
func (m *model) wantsRead() (types.NamespacedName, bool) {
	p := m.page
	if p == nil || p.reading || m.lost != nil && !p.readAt.IsZero() || m.items[p.name] == nil && m.loaded {
		return types.NamespacedName{}, false
	}
	age := m.now.Sub(p.readAt)
	well := m.items[p.name] != nil && m.items[p.name].is.Word.IsWell()
	return p.name, p.readAt.IsZero() || p.stale && age >= readLeast || !well && age >= readAgain
}

// reads notes that what is opened is being read.
func (m *model) reads() { m.page.reading, m.page.stale = true, false }

// hasRead takes in what was read, unless something else was opened meanwhile.
func (m *model) hasRead(name types.NamespacedName, read details, err error) {
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

// ownerAgain is how often a Shoot or Seed is read.
const ownerAgain = 2 * time.Second

// wantsOwner reports whether the Shoot or Seed has to be read now, and notes that it is being read.
func (m *model) wantsOwner() bool {
	if m.owner == nil || m.ownerReading || m.now.Sub(m.ownerReadAt) < ownerAgain {
		return false
	}
	m.ownerReading = true
	return true
}

// hasReadOwner takes in the Shoot or Seed, or why it could not be read.
func (m *model) hasReadOwner(owner *fleet.Owner, err error) {
	m.ownerReading, m.ownerReadAt, m.ownerLost = false, m.now, err
	if err == nil {
		m.owner = owner
	}
}

// take takes in what has changed.
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

// choose chooses the item at a place, or the nearest one, and has it on the screen.
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

// resize takes in how large the terminal is.
func (m *model) resize(width, height int) {
	m.width, m.height = width, height
	m.choose(m.cursor)
	if m.page != nil {
		m.scroll(m.page.offset)
	}
}

// Lines around the rows of the list, and around an opened page.
const (
	linesOfList = 4 // title, counts, header of the table, keys
	linesOfPage = 2 // title, keys
)

// rows is how many items are on the screen.
func (m *model) rows() int { return max(m.height-linesOfList-len(m.viewOwner()), 1) }

// counts returns how many items there are in each state.
func (m *model) counts() map[state.Word]int {
	counts := map[state.Word]int{}
	for _, is := range m.items {
		counts[is.is.Word]++
	}
	return counts
}
