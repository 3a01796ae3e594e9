package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

func TestList(t *testing.T) {
	m := shop()
	m.pressAll("Down")
	want := `ManagedResources in all namespaces at 127.0.0.1:6443
1 Failed  1 Unhealthy  1 Progressing  1 Suspended  4 Ready
  NAMESPACE  NAME   STATE        SINCE  OBJECTS  MESSAGE
  seed       dns    Failed       90m    3        forbidden
> garden     sale   Unhealthy    3m     3        Deployment "webshop/sale" is u…
  seed       etcd   Progressing  60s    3        rolled out
  garden     base   Suspended    50m    3        It is suspended until it is re…
  garden     app    Ready        60m    3
  seed       istio  Ready        2m     3
2 of 8 · Enter open · / filter · u unhealthy · ? help`
	if got := m.text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	lines := m.view()
	for i, each := range lines {
		if each.chosen != (i == 4) {
			t.Errorf("line %d is selected: %t", i, each.chosen)
		}
	}
	if state := lines[4].spans[1]; state != (screen.Span{Text: "Unhealthy", Style: screen.Bad}) {
		t.Errorf("%+v", state)
	}
}

func TestFirstLines(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *model)
		want   string
	}{
		"the filter": {func(m *model) { m.pressAll("u / s e e d") }, "\n2 of 8 shown (unhealthy /seed): 1 Failed  1 Unhealthy"},
		"typing":     {func(m *model) { m.pressAll("/ a b") }, "\n/ab_"},
		"none":       {func(m *model) { m.pressAll("/ z") }, "\nNone of 8 ManagedResources matches the filter. Press Esc to clear it.\n"},
		"all well": {func(m *model) {
			m.take(all(of("a", "b", state.Ready, 1, "")))
			m.pressAll("u")
		}, "\nAll 1 ManagedResources are ready or suspended. Press u to show them.\n"},
		"nothing there": {func(m *model) { m.take(all()) }, "\nNo ManagedResources found in all namespaces.\n"},
		"nothing here": {func(m *model) {
			m.take(all())
			m.everywhere, m.scope = false, "in namespace default"
		}, "\nNo ManagedResources found in namespace default. Use top -A for all.\n"},
		"connection lost": {func(m *model) {
			m.take(changes{lost: errors.New("dial tcp:\nconnection refused")})
			m.now = m.now.Add(12 * time.Second)
			m.take(changes{lost: errors.New("dial tcp: timeout")})
		}, "NO CONNECTION to 127.0.0.1:6443 for 12s, retrying: dial tcp: timeout\n1 Failed"},
		"connection again": {func(m *model) {
			m.take(changes{lost: errors.New("connection refused")})
			m.take(changes{})
		}, "ManagedResources in all namespaces at 127.0.0.1:6443\n1 Failed"},
		"reading": {func(m *model) {
			m.items, m.loaded = nil, false
			m.take(changes{read: 400})
			m.sort()
		}, "\nReading ManagedResources (400) …\n"},
		"said":   {func(m *model) { m.status = "reconciliation\nrequested" }, "\nreconciliation requested"},
		"sorted": {func(m *model) { m.pressAll("s") }, "\nSorted by last change."},
	} {
		m := shop()
		test.change(m)
		if got := m.text(); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q is not in\n%s", name, test.want, got)
		}
	}
}

// TestFits checks that all views fill the terminal and that no table is wider than it, for terminals of any size.
func TestFits(t *testing.T) {
	for _, width := range []int{1, 20, 60, 80, 200} {
		for _, height := range []int{1, 2, 3, 5, 20, 60} {
			for _, keys := range []string{"", "End", "?", "Enter", "/ x", "u"} {
				m := shop()
				m.resize(width, height)
				m.pressAll(keys)
				if m.page != nil {
					m.finishRead(m.page.name, leaflet(100), nil)
				}
				lines := m.view()
				if len(lines) != height {
					t.Errorf("%d x %d, %q: %d lines", width, height, keys, len(lines))
				}
				for _, each := range strings.Split(m.text(), "\n") {
					if count := utf8.RuneCountInString(each); count > width {
						t.Errorf("%d x %d, %q: a line has %d characters: %s", width, height, keys, count, each)
					}
				}
			}
		}
	}
}

// TestHarmless checks that texts of objects cannot control the terminal.
func TestHarmless(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	mr.Status.Conditions = []resourcesv1alpha1.Condition{{
		Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionFalse, Message: "\x1b[2Jcleared\x07\u009b31m\rover\nnext",
	}}
	m := shop()
	m.take(all(newItem(mr)))
	m.status = "\x1b]0;title\x07"
	m.lost = errors.New("\x1b[31mred")
	m.filter.words = "\x1b[2J"
	for _, typing := range []bool{false, true} {
		m.typing = typing
		if text := m.text(); strings.ContainsAny(text, "\x1b\x07\u009b\r") {
			t.Errorf("%q", text)
		}
	}
	m.filter.words = ""
	m.sort()
	if text := m.text(); !strings.Contains(text, "[2Jcleared31mover") || strings.Contains(text, "next") {
		t.Errorf("the message is not shown:\n%s", text)
	}
}

func TestScope(t *testing.T) {
	o := Options{}
	if got := scope(o.Choice, "garden"); got != "in namespace garden" {
		t.Error(got)
	}
	o.AllNamespaces, o.Class, o.Selector = true, "seed", "a=b"
	if got := scope(o.Choice, "garden"); got != "in all namespaces, class seed, labels a=b" {
		t.Error(got)
	}
}

// BenchmarkChange changes one of 10,000 ManagedResources and draws the screen.
func BenchmarkChange(b *testing.B) {
	var items []*item
	for i := range 10_000 {
		items = append(items, of(fmt.Sprintf("shoot--%d", i%300), fmt.Sprintf("extension-%d", i), state.Words[i%len(state.Words)], i%1000, "something is not as it should be"))
	}
	m := shop()
	m.resize(200, 60)
	m.take(all(items...))
	for b.Loop() {
		m.take(changes{items: map[types.NamespacedName]*item{items[0].FullName(): items[0]}})
		m.view()
	}
}

// TestOwner checks that the operation of a Shoot is shown above the list, which then has one line less.
func TestOwner(t *testing.T) {
	m := shop()
	rows := m.rows()
	m.owner = &fleet.Owner{
		Name: fleet.Name{Kind: fleet.Shoot, NamespacedName: types.NamespacedName{Namespace: "garden-dev", Name: "one"}}, Observed: true,
		LastOperation: &corev1beta1.LastOperation{
			Type: "Create", State: "Processing", Progress: 40, Description: "etcd-main", LastUpdateTime: metav1.NewTime(m.now.Add(-3 * time.Second)),
		},
	}
	if want := "\nCreate Processing, 40 %, 3s ago: etcd-main\n1 Failed"; !strings.Contains(m.text(), want) || m.rows() != rows-1 {
		t.Errorf("%q is not in\n%s", want, m.text())
	}
	m.ownerReadAt = m.now
	if m.startOwnerRead() {
		t.Error("the owner is read again immediately")
	}
	m.now = m.now.Add(ownerAgain)
	if !m.startOwnerRead() || m.startOwnerRead() {
		t.Error("the owner is not read again, or it is read twice at the same time")
	}
	m.finishOwnerRead(nil, errors.New("no answer"))
	if want := "\nShoot garden-dev/one cannot be read: no answer\n"; !strings.Contains(m.text(), want) {
		t.Errorf("%q is not in\n%s", want, m.text())
	}
}
