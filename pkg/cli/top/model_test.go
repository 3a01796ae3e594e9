package top

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

var start0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// of returns an item that has been in a state for the given number of minutes.
func of(namespace, name string, word state.Word, minutes int, message string) *item {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	is := newItem(mr)
	is.is = state.State{Word: word, Since: start0.Add(-time.Duration(minutes) * time.Minute)}
	is.message, is.objects = message, 3
	is.text = strings.ToLower(strings.Join([]string{namespace + "/" + name, string(word), is.class, message}, " "))
	return is
}

func all(items ...*item) changes {
	result := changes{replaced: true, items: map[types.NamespacedName]*item{}}
	for _, is := range items {
		result.items[is.FullName()] = is
	}
	return result
}

// shop is a model with some ManagedResources on a terminal of 80 columns and 10 rows. Six rows show items.
func shop() *model {
	m := &model{scope: "in all namespaces", host: "127.0.0.1:6443", everywhere: true, now: start0}
	m.resize(80, 10)
	m.take(all(
		of("garden", "app", state.Ready, 60, ""), of("garden", "base", state.Suspended, 50, "It is suspended until it is resumed."),
		of("garden", "sale", state.Unhealthy, 3, "Deployment \"webshop/sale\" is unhealthy: condition \"Available\" has invalid status False"),
		of("seed", "dns", state.Failed, 90, "forbidden"), of("seed", "etcd", state.Progressing, 1, "rolled out"),
		of("seed", "istio", state.Ready, 2, ""), of("seed", "loki", state.Ready, 2, ""), of("seed", "vpa", state.Ready, 2, ""),
	))
	return m
}

func namesOf(m *model) string {
	var names []string
	for _, is := range m.shown {
		names = append(names, is.Name)
	}
	return strings.Join(names, " ")
}

func (m *model) text() string {
	var lines []string
	for _, each := range m.view() {
		var text strings.Builder
		for _, span := range each.spans {
			text.WriteString(span.Text)
		}
		lines = append(lines, strings.TrimRight(text.String(), " "))
	}
	return strings.Join(lines, "\n")
}

func TestOrderAndFilter(t *testing.T) {
	for _, test := range []struct{ keys, want string }{
		{"", "dns sale etcd base app istio loki vpa"},
		{"s", "etcd istio loki vpa sale base app dns"},
		{"s s", "app base sale dns etcd istio loki vpa"},
		{"s s s", "dns sale etcd base app istio loki vpa"},
		{"u", "dns sale etcd"},
		{"u u", "dns sale etcd base app istio loki vpa"},
		{"/ s e e d", "dns etcd istio loki vpa"},
		{"/ g a r d e n / a p Enter", "app"},
		{"/ S E E D Space r e a d", "istio loki vpa"},
		{"/ a v a i l a b l e", "sale"},
		{"/ z z Backspace Backspace", "dns sale etcd base app istio loki vpa"},
		{"/ z z Esc", "dns sale etcd base app istio loki vpa"},
		{"/ z z Enter Esc", "dns sale etcd base app istio loki vpa"},
		{"/ q ?", ""},
	} {
		m := shop()
		m.pressAll(test.keys)
		if got := namesOf(m); got != test.want {
			t.Errorf("%q: %q, want %q", test.keys, got, test.want)
		}
	}
}

// pressAll presses keys, which are separated by spaces, and returns the action that the last key requests.
func (m *model) pressAll(keys string) (do action, name types.NamespacedName) {
	for _, key := range strings.Fields(keys) {
		if key == "Space" {
			key = " "
		}
		do, name = m.press(key)
	}
	return do, name
}

func TestMove(t *testing.T) {
	for _, test := range []struct {
		keys           string
		cursor, offset int
		chosen         string
	}{
		{"", 0, 0, "dns"}, {"Down", 1, 0, "sale"}, {"j j k", 1, 0, "sale"}, {"Up", 0, 0, "dns"}, {"End", 7, 2, "vpa"},
		{"End Up", 6, 2, "loki"}, {"G g", 0, 0, "dns"}, {"PgDn", 6, 1, "loki"}, {"PgDn PgDn PgDn", 7, 2, "vpa"}, {"PgDn PgUp", 0, 0, "dns"},
		{"End Home", 0, 0, "dns"}, {"Down Down u", 2, 0, "etcd"}, {"End u", 2, 0, "etcd"}, {"End / s a l", 0, 0, "sale"},
	} {
		m := shop()
		m.pressAll(test.keys)
		if m.cursor != test.cursor || m.offset != test.offset || m.chosen.Name != test.chosen {
			t.Errorf("%q: %d, from %d, %s; want %+v", test.keys, m.cursor, m.offset, m.chosen.Name, test)
		}
	}
}

// TestChosenStays checks that the selection does not move when other items appear or disappear. Until a person selects an item,
// the first line, with the worst state, is selected.
func TestChosenStays(t *testing.T) {
	worse := of("aaa", "worse", state.Failed, 0, "")
	m := shop()
	m.take(changes{items: map[types.NamespacedName]*item{worse.FullName(): worse}})
	if m.chosen.Name != "worse" {
		t.Errorf("%s is selected, want worse", m.chosen.Name)
	}
	m = shop()
	m.pressAll("Down Down")
	m.take(changes{items: map[types.NamespacedName]*item{worse.FullName(): worse}})
	if m.chosen.Name != "etcd" || m.cursor != 3 {
		t.Errorf("%s is selected at %d, want etcd", m.chosen.Name, m.cursor)
	}
	m.take(changes{items: map[types.NamespacedName]*item{{Namespace: "seed", Name: "etcd"}: nil}})
	if m.chosen.Name != "base" || m.cursor != 3 || len(m.items) != 8 {
		t.Errorf("%s is selected at %d of %d after etcd was removed", m.chosen.Name, m.cursor, len(m.items))
	}
	m.take(all())
	if do, _ := m.pressAll("Enter r Down"); do != nothing || m.page != nil || m.cursor != 0 {
		t.Errorf("an item is selected in an empty list: %+v", m)
	}
}

func TestActions(t *testing.T) {
	sale := types.NamespacedName{Namespace: "garden", Name: "sale"}
	for _, test := range []struct {
		keys string
		do   action
	}{
		{"q", quit}, {"Esc", quit}, {"Ctrl-C", quit}, {"? Ctrl-C", quit}, {"/ Ctrl-C", quit}, {"Enter Ctrl-C", quit}, {"/ q", nothing}, {"? q", nothing},
		{"Enter q", nothing}, {"Enter Esc", nothing}, {"Enter Esc Esc", quit}, {"u Esc", nothing}, {"u Esc Esc", quit},
		{"Down r", askReconcile}, {"Down Enter r", askReconcile}, {"/ r", nothing}, {"? r", nothing}, {"x", nothing},
	} {
		m := shop()
		do, name := m.pressAll(test.keys)
		if do != test.do || do == askReconcile && name != sale {
			t.Errorf("%q: %d of %s, want %d", test.keys, do, name, test.do)
		}
	}
	for _, test := range []struct {
		key  string
		do   action
		says string
	}{{"y", reconcile, "Requesting the reconciliation of garden/sale"}, {"n", nothing, "Canceled."}, {"q", nothing, "Canceled."}, {"Enter", nothing, "Canceled."}} {
		m := shop()
		m.asked = &sale
		if !strings.HasSuffix(m.text(), "\nReconcile garden/sale? y/n") {
			t.Errorf("no confirmation is requested:\n%s", m.text())
		}
		do, name := m.press(test.key)
		if do != test.do || do == reconcile && name != sale || m.asked != nil || !strings.Contains(m.text(), test.says) {
			t.Errorf("%s: %d of %s, the screen is\n%s", test.key, do, name, m.text())
		}
	}
}

// leaflet is a details page with the given number of lines.
type leaflet int

func (l leaflet) Print(to screen.Screen, _ time.Time) error {
	for i := range int(l) {
		if _, err := fmt.Fprintf(to, "line %d\n", i+1); err != nil {
			return err
		}
	}
	return nil
}

type broken struct{}

func (broken) Print(screen.Screen, time.Time) error { return io.ErrShortWrite }

func TestPage(t *testing.T) {
	m := shop()
	m.pressAll("Down Enter")
	name, wanted := m.needsRead()
	if name.Name != "sale" || !wanted || !strings.HasPrefix(m.text(), "garden/sale: reading …\n") {
		t.Errorf("%s %t\n%s", name, wanted, m.text())
	}
	m.startRead()
	if _, wanted := m.needsRead(); wanted {
		t.Error("a second read is started during the first one")
	}
	m.finishRead(types.NamespacedName{Name: "another"}, leaflet(1), nil)
	m.finishRead(name, leaflet(20), nil)
	for _, test := range []struct {
		keys        string
		first, last int
	}{{"", 1, 8}, {"Down", 2, 9}, {"End", 13, 20}, {"Down", 13, 20}, {"Up", 12, 19}, {"PgUp", 4, 11}, {"Home", 1, 8}, {"Up", 1, 8}, {"Space", 9, 16}} {
		m.pressAll(test.keys)
		lines := strings.Split(m.text(), "\n")
		if lines[1] != fmt.Sprintf("line %d", test.first) || lines[8] != fmt.Sprintf("line %d", test.last) || !strings.HasPrefix(lines[9], fmt.Sprintf("%d of 20", test.last)) {
			t.Errorf("%q: want %d to %d\n%s", test.keys, test.first, test.last, m.text())
		}
	}
	m.startRead()
	m.finishRead(name, leaflet(5), nil)
	if m.page.offset != 0 {
		t.Errorf("the page still starts at line %d although it has become shorter", m.page.offset)
	}
	m.finishRead(name, nil, errors.New("forbidden\nask"))
	if text := m.text(); !strings.HasPrefix(text, "garden/sale cannot be read: forbidden ask\nline 1\n") {
		t.Errorf("the error is not shown above the previous content:\n%s", text)
	}
	m.finishRead(name, broken{}, nil)
	if text := m.text(); !strings.Contains(m.text()+text, "short write") {
		t.Errorf("the reason for the empty page is missing:\n%s", text)
	}
	m.take(all())
	if text := m.text(); !strings.HasPrefix(text, "garden/sale was deleted") {
		t.Errorf("the deletion is not shown:\n%s", text)
	}
	m.pressAll("Esc")
	m.finishRead(name, leaflet(1), nil)
	if m.page != nil {
		t.Error("the closed page is open again")
	}
}

// TestReadAgain checks that an open page is read again when its object changes, and periodically while the object is not
// healthy.
func TestReadAgain(t *testing.T) {
	for name, test := range map[string]struct {
		at      string
		stale   bool
		lost    error
		seconds int
		want    bool
	}{
		"well":                   {"istio", false, nil, 3600, false},
		"well, and changed":      {"istio", true, nil, 1, true},
		"changed at once":        {"istio", true, nil, 0, false},
		"not well, a while ago":  {"sale", false, nil, 5, true},
		"not well, just read":    {"sale", false, nil, 4, false},
		"no connection":          {"sale", true, io.EOF, 60, false},
		"gone":                   {"gone", true, nil, 60, false},
		"not well, read already": {"dns", false, nil, 0, false},
	} {
		m := shop()
		m.now = start0.Add(time.Duration(test.seconds) * time.Second)
		m.lost = test.lost
		at := slices.IndexFunc(m.shown, func(is *item) bool { return is.Name == test.at })
		m.page = &page{readAt: start0, stale: test.stale}
		if at >= 0 {
			m.page.name = m.shown[at].FullName()
		}
		if _, got := m.needsRead(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
