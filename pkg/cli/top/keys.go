package top

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
)

// Names of keys that are not characters.
const (
	keyUp        = "Up"
	keyDown      = "Down"
	keyPageUp    = "PgUp"
	keyPageDown  = "PgDn"
	keyHome      = "Home"
	keyEnd       = "End"
	keyEnter     = "Enter"
	keyEscape    = "Esc"
	keyBackspace = "Backspace"
	keyInterrupt = "Ctrl-C"
)

// keys is the text of the help.
const keys = `Up Down j k    move up or down
PgUp PgDn      move up or down by a screen
Home End g G   move to the start or the end
Enter          open the selected ManagedResource: why it is not ready, and its objects
Esc q          go back; in the list, quit
/              filter by words in namespace, name, state, class or message; Enter keeps the filter, Esc clears it
u              show only those that are neither ready nor suspended
s              sort by state (most severe first), by last change or by name
r              reconcile the selected ManagedResource
?              show this help
Ctrl-C         quit`

// action is the action of a key that the model cannot execute itself.
type action int

const (
	nothing action = iota
	quit
	// askReconcile checks the permission to reconcile a ManagedResource and prompts for confirmation. reconcile executes
	// it.
	askReconcile
	reconcile
)

// press handles a key. It returns the action to execute, and its ManagedResource.
func (m *model) press(key string) (action, types.NamespacedName) {
	m.status = ""
	switch {
	case key == keyInterrupt:
		return quit, types.NamespacedName{}
	case m.asked != nil:
		return m.answer(key)
	case m.typing:
		m.edit(key)
	case m.help:
		m.help = false
	case key == "?":
		m.help = true
	case m.page != nil:
		return m.pressOnPage(key)
	default:
		return m.pressOnList(key)
	}
	return nothing, types.NamespacedName{}
}

// answer handles the answer to the confirmation of a reconciliation.
func (m *model) answer(key string) (action, types.NamespacedName) {
	name := *m.asked
	m.asked = nil
	if key != "y" && key != "Y" {
		m.status = "Canceled."
		return nothing, types.NamespacedName{}
	}
	m.status = fmt.Sprintf("Requesting the reconciliation of %s …", name)
	return reconcile, name
}

// edit changes the filter.
func (m *model) edit(key string) {
	words := m.filter.words
	switch {
	case key == keyEnter:
		m.typing = false
	case key == keyEscape:
		m.typing, words = false, ""
	case key == keyBackspace && words == "":
		m.typing = false
	case key == keyBackspace:
		_, size := utf8.DecodeLastRuneInString(words)
		words = words[:len(words)-size]
	case utf8.RuneCountInString(key) == 1:
		words += key
	}
	if words != m.filter.words {
		m.filter.words = words
		m.sort()
	}
}

func (m *model) pressOnPage(key string) (action, types.NamespacedName) {
	switch key {
	case keyEscape, "q", keyBackspace:
		m.page = nil
	case "r":
		return askReconcile, m.page.name
	default:
		if to, moves := move(key, m.page.offset, m.pageRows()); moves {
			m.scroll(to)
		}
	}
	return nothing, types.NamespacedName{}
}

func (m *model) pressOnList(key string) (action, types.NamespacedName) {
	switch key {
	case "q":
		return quit, types.NamespacedName{}
	case keyEscape:
		if m.filter.isEmpty() {
			return quit, types.NamespacedName{}
		}
		m.filter = filter{}
		m.sort()
	case "/":
		m.typing = true
	case "u":
		m.filter.unwell = !m.filter.unwell
		m.sort()
	case "s":
		m.order = (m.order + 1) % order(len(orderNames))
		m.status = fmt.Sprintf("Sorted by %s.", orderNames[m.order])
		m.sort()
	case keyEnter:
		if len(m.shown) > 0 {
			m.page, m.moved = &page{name: m.chosen}, true
		}
	case "r":
		if len(m.shown) > 0 {
			m.moved = true
			return askReconcile, m.chosen
		}
	default:
		if to, moves := move(key, m.cursor, m.rows()); moves {
			m.moved = to > 0
			m.choose(to)
		}
	}
	return nothing, types.NamespacedName{}
}

// farAway is beyond the last line.
const farAway = 1 << 30

// move returns the index to which a key moves from an index. It may be out of range.
func move(key string, from, rows int) (to int, moves bool) {
	switch key {
	case keyUp, "k":
		return from - 1, true
	case keyDown, "j":
		return from + 1, true
	case keyPageUp, "b":
		return from - rows, true
	case keyPageDown, " ":
		return from + rows, true
	case keyHome, "g":
		return 0, true
	case keyEnd, "G":
		return farAway, true
	}
	return from, false
}
