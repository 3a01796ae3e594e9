package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// wrote returns a change that records a write by a field manager at a time.
func wrote(manager string, at int64) func(*record) {
	return func(r *record) { r.writes = append(r.writes, write{unique.Make(manager), at}) }
}

// entriesFor returns entries of ConfigMaps with names and digests.
func entriesFor(texts ...string) []entry {
	mr := &resourcesv1alpha1.ManagedResource{}
	for i := 0; i < len(texts); i += 2 {
		mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: texts[i], Digest: texts[i+1],
		})
	}
	return entriesOf(mr)
}

func newRecord(name, version string, change ...func(*record)) *record {
	r := &record{
		Meta: watch.Meta{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, UID: types.UID(name), ResourceVersion: version}},
		row:  Row{Namespace: "garden", Name: name, State: state.Ready, Version: version}, generation: 1,
		conditions: []Condition{{Type: "ResourcesApplied", Status: "True", Reason: "ApplySucceeded"}},
		entries:    entriesFor("a", "1.1", "b", "2.2"),
	}
	for _, each := range change {
		each(r)
	}
	return r
}

func TestDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *record
		want          []string
	}{
		"new":     {nil, newRecord("a", "1"), []string{"created"}},
		"gone":    {newRecord("a", "1"), nil, []string{"deleted"}},
		"anew":    {newRecord("a", "1"), newRecord("a", "2", func(r *record) { r.UID = "other" }), []string{"created"}},
		"nothing": {newRecord("a", "1"), newRecord("a", "2"), nil},
		"spec":    {newRecord("a", "1"), newRecord("a", "2", func(r *record) { r.generation = 2 }), []string{"spec 1→2 by "}},
		"spec by one": {newRecord("a", "1", wrote("helm", 1)), newRecord("a", "2", func(r *record) { r.generation = 2 }, wrote("helm", 1), wrote("kubectl-edit", 2)),
			[]string{"spec 1→2 by kubectl-edit"}},
		"spec by the same again": {newRecord("a", "1", wrote("helm", 1)), newRecord("a", "2", func(r *record) { r.generation = 2 }, wrote("helm", 5)), []string{"spec 1→2 by helm"}},
		"spec by one of two":     {newRecord("a", "1"), newRecord("a", "2", func(r *record) { r.generation = 2 }, wrote("helm", 5), wrote("kubectl-edit", 5)), []string{"spec 1→2 by "}},
		"state and condition": {newRecord("a", "1"), newRecord("a", "2", func(r *record) {
			r.row.State = state.Failed
			r.conditions = []Condition{{Type: "ResourcesApplied", Status: "False", Reason: "ApplyFailed"}}
		}), []string{"condition ResourcesApplied True→False", "state Ready→Failed"}},
		"a condition more": {newRecord("a", "1", func(r *record) { r.conditions = nil }), newRecord("a", "2"), []string{"condition ResourcesApplied →True"}},
		"objects": {newRecord("a", "1"), newRecord("a", "2", func(r *record) {
			r.entries = entriesFor("a", "1.3", "c", "", "d", "4.4")
		}), []string{"objects +2 [ConfigMap shop/a ConfigMap shop/d (new)] -1 [ConfigMap shop/b]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, change := range differences(test.before, test.after, start) {
				text := change.What
				switch change.What {
				case changedSpec:
					text += fmt.Sprintf(" %s→%s by %s", change.From, change.To, change.Manager)
				case changedState:
					text += fmt.Sprintf(" %s→%s", change.From, change.To)
				case changedCondition:
					text += fmt.Sprintf(" %s %s→%s", change.Condition, change.From, change.To)
				case changedObjects:
					text += fmt.Sprintf(" +%d %v -%d %v", change.AppliedCount, change.Applied, change.GoneCount, change.Gone)
				}
				if change.At != start.Unix() || change.Name != "a" {
					t.Errorf("%+v", change)
				}
				got = append(got, text)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestManyObjectsAreCounted(t *testing.T) {
	after := newRecord("a", "2", func(r *record) {
		for i := range 100 {
			r.entries = append(r.entries, entriesFor(strconv.Itoa(i), "1.1")...)
		}
	})
	changes := differences(newRecord("a", "1"), after, start)
	if len(changes) != 1 || changes[0].AppliedCount != 100 || len(changes[0].Applied) != maxNamed {
		t.Errorf("%+v", changes)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var h history
	for i := range maxChanges + 10 {
		h.add([]Change{{At: int64(i), Namespace: "garden", Name: []string{"a", "b"}[i%2]}})
	}
	found := h.of(types.NamespacedName{Namespace: "garden", Name: "a"})
	if len(h.changes) != maxChanges || len(found) != maxChanges/2 || found[0].At != maxChanges+8 || found[len(found)-1].At != 10 {
		t.Errorf("%d changes, %d of them about a, from %d to %d", len(h.changes), len(found), found[0].At, found[len(found)-1].At)
	}
}

func newTestStore() *store {
	return newStore(testingclock.NewFakePassiveClock(start))
}

// describe returns the changes that a page gets, as text.
func describe(news News) string {
	text := fmt.Sprintf("%d", news.Sequence)
	if news.Reset {
		text += " reset"
	}
	for _, row := range news.Rows {
		text += " +" + row.Name + row.Version
	}
	for _, name := range news.Gone {
		text += " -" + name.Name
	}
	return text + " " + news.Lost
}

func TestFeed_SendsChanges(t *testing.T) {
	f := newTestStore()
	ask := func(since uint64, want string) {
		t.Helper()
		news, _ := f.since(since, AllNamespaces(), error.Error)
		if got := strings.TrimSpace(describe(news)); got != want {
			t.Errorf("since %d: %q, want %q", since, got, want)
		}
	}
	take := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ask(0, "0 reset")
	take(f.Replace([]any{newRecord("a", "1")}, ""))
	ask(0, "1 reset +a1")
	take(f.Add(newRecord("b", "1")))
	ask(1, "2 +b1")
	ask(2, "2")
	take(f.Update(newRecord("b", "2")))
	take(f.Delete(newRecord("a", "1")))
	ask(2, "4 +b2 -a")
	ask(3, "4 -a")
	take(f.Add(newRecord("a", "9")))
	ask(3, "5 +a9")                                                                               // it exists again
	if news, _ := f.since(99, AllNamespaces(), error.Error); !news.Reset || len(news.Rows) != 2 { // the sequence of a previous server
		t.Errorf("%+v", news)
	}
	take(f.Replace([]any{newRecord("a", "9")}, "")) // after an interrupted watch: b is deleted, a is unchanged
	ask(5, "6 -b")
	f.OnError(errors.New("refused"))
	ask(6, "7 refused")
	if changes := f.historyOf(types.NamespacedName{Namespace: "garden", Name: "b"}); len(changes) != 2 || changes[0].What != changedDeleted || changes[1].What != changedCreated {
		t.Errorf("history of b: %+v", changes)
	}
	if err := f.Add("text"); err == nil {
		t.Error("an object that is not a record is accepted")
	}
}

func TestFeed_WakesWaiters(t *testing.T) {
	f := newTestStore()
	_, changed := f.since(0, AllNamespaces(), error.Error)
	select {
	case <-changed:
		t.Error("the waiter was woken without a change")
	default:
	}
	if err := f.Add(newRecord("a", "1")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("the waiter was not woken")
	}
}

func TestFeedForgetsDepartures(t *testing.T) {
	f := newTestStore()
	for i := range maxGone + 1 {
		name := fmt.Sprintf("a%d", i)
		if err := errors.Join(f.Add(newRecord(name, "1")), f.Delete(newRecord(name, "1"))); err != nil {
			t.Fatal(err)
		}
	}
	if news, _ := f.since(1, AllNamespaces(), error.Error); !news.Reset {
		t.Error("a page that is too far behind does not get all rows again")
	}
	if news, _ := f.since(2, AllNamespaces(), error.Error); news.Reset || len(news.Gone) != maxGone {
		t.Errorf("a page that is behind gets %d deletions, want %d", len(news.Gone), maxGone)
	}
}

func TestActivitiesOf(t *testing.T) {
	event := func(age time.Duration, count int32, series *corev1.EventSeries) corev1.Event {
		return corev1.Event{
			InvolvedObject: corev1.ObjectReference{Namespace: "garden", Name: "shop"}, Reason: "Corrected", Message: "text", Count: count, Series: series,
			LastTimestamp: metav1.NewTime(start.Add(-age)),
		}
	}
	got := activitiesOf([]corev1.Event{event(2*time.Hour, 1, nil), event(time.Minute, 0, nil), event(time.Hour, 1, &corev1.EventSeries{Count: 4})}, start)
	if len(got) != 2 || got[0].Count != 1 || got[0].Last != start.Add(-time.Minute).Unix() || got[1].Count != 4 {
		t.Errorf("%+v", got)
	}
}

func TestTextsAreBounded(t *testing.T) {
	if got := shorten(strings.Repeat("ä", longest)); len(got) > longest+3 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-5:])
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Message: strings.Repeat("x", 1<<20)}}
	if got := recordOf(mr); len(got.conditions[0].Message) > longest+3 {
		t.Errorf("%d bytes of the message are kept", len(got.conditions[0].Message))
	}
}

func TestAssets(t *testing.T) {
	found, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	page := string(found[pagePath].plain)
	if strings.Contains(page, placeholder) || strings.Contains(page, "://") || strings.Contains(page, "<style") || strings.Contains(page, " style=") || strings.Contains(page, " onclick") {
		t.Error("the page contains something that its policy forbids, or loads from another origin")
	}
	for name, asset := range found {
		if !asset.forever {
			continue
		}
		text := string(asset.plain)
		for _, forbidden := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"} {
			if strings.Contains(text, forbidden) {
				t.Errorf("%s uses %s", name, forbidden)
			}
		}
		if !strings.Contains(page, name) {
			t.Errorf("the page does not load %s", name)
		}
		if asset.kind == "" {
			t.Errorf("%s has no media type", name)
		}
	}
}

// TestModules checks that the page names all modules, so that the browser loads them at once instead of one import after the
// other. It also checks that each import is exported by its module.
func TestModules(t *testing.T) {
	names, err := fs.Glob(files, "assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	page, err := files.ReadFile("assets/index.html")
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, name := range names {
		read, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[path.Base(name)] = string(read)
	}
	for name, text := range content {
		want := `<link rel="modulepreload" href="ASSETS/` + name + `">`
		if name == "app.js" {
			want = `<script type="module" src="ASSETS/app.js"></script>`
		}
		if !strings.Contains(string(page), want) {
			t.Errorf("index.html does not contain %s", want)
		}
		for _, found := range regexp.MustCompile(`(?m)^import \{ (.*) \} from "\./(.*)";$`).FindAllStringSubmatch(text, -1) {
			for _, each := range strings.Split(found[1], ", ") {
				if !regexp.MustCompile(`(?m)^export (async )?(function|class|const) ` + each + `\b`).MatchString(content[found[2]]) {
					t.Errorf("%s imports %s, which %s does not export", name, each, found[2])
				}
			}
		}
	}
}

func TestTakesGzip(t *testing.T) {
	for accepted, want := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0": false, "identity": false, "xgzip": false} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept-Encoding", accepted)
		if got := acceptsGzip(r); got != want {
			t.Errorf("%q: %t", accepted, got)
		}
	}
}
