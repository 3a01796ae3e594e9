package ui

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	toolscache "k8s.io/client-go/tools/cache"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	testingclock "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

func newManagedResource(namespace, name, version string, objects ...string) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name, mr.ResourceVersion, mr.UID = namespace, name, version, "uid"
	for _, object := range objects {
		mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: object, Digest: "1." + version})
	}
	return mr
}

// TestInformed checks which parts of cached objects are kept, and which history they result in.
func TestInformed(t *testing.T) {
	s := newTestStore()
	one, changed := newManagedResource("garden", "a", "1", "x"), newManagedResource("garden", "a", "2", "x", "y")
	s.inform(nil, one)
	s.inform(nil, newManagedResource("other", "b", "1"))
	s.inform(nil, nil)
	s.change(func() { s.loaded = true })
	s.inform(one, changed)
	s.inform(changed, changed) // caches occasionally do this
	if got := s.inventoryOf(state.NameOf(one)); len(got) != 2 {
		t.Errorf("the inventory is %v", got)
	}
	if got := s.records[state.NameOf(one)]; got.entries != nil || got.conditions != nil || got.row.Objects != 2 || len(s.records) != 2 {
		t.Errorf("kept: %+v", got)
	}
	history := s.historyOf(state.NameOf(one))
	if len(history) != 1 || history[0].What != changedObjects || history[0].AppliedCount != 2 {
		t.Errorf("history: %+v", history)
	}
	s.inform(managedResource(toolscache.DeletedFinalStateUnknown{Obj: changed}), nil)
	if history := s.historyOf(state.NameOf(one)); len(s.records) != 1 || history[0].What != changedDeleted {
		t.Errorf("after the deletion: %+v", history)
	}
	if managedResource("text") != nil {
		t.Error("an object that is not a ManagedResource is accepted")
	}
}

// TestFeed_OmitsOtherNamespaces checks that rows and deletions in namespaces that a viewer may not see are omitted.
func TestFeed_OmitsOtherNamespaces(t *testing.T) {
	s := newTestStore()
	a, b := newManagedResource("garden", "a", "1"), newManagedResource("other", "b", "1")
	s.inform(nil, a)
	s.inform(nil, b)
	mine := TheseNamespaces([]string{"garden"})
	if news, _ := s.since(0, mine, error.Error); len(news.Rows) != 1 || news.Rows[0].Name != "a" {
		t.Errorf("%+v", news)
	}
	s.inform(b, nil)
	s.inform(nil, newManagedResource("other", "c", "1"))
	if news, _ := s.since(2, mine, error.Error); len(news.Rows)+len(news.Gone) > 0 {
		t.Errorf("%+v", news)
	}
	if news, _ := s.since(0, Namespaces{}, error.Error); len(news.Rows) > 0 {
		t.Errorf("a viewer without permissions gets %+v", news)
	}
}

func TestNamespaces(t *testing.T) {
	server := &Server{store: newTestStore()}
	for i := range 5 {
		server.store.inform(nil, newManagedResource(fmt.Sprintf("n%d", 4-i/2), fmt.Sprint(i), "1"))
	}
	if names, more := server.Namespaces(3); fmt.Sprint(names) != "[n2 n3 n4]" || more {
		t.Errorf("%q %t", names, more)
	}
	if names, more := server.Namespaces(2); fmt.Sprint(names) != "[n2 n3]" || !more {
		t.Errorf("%q %t", names, more)
	}
	same, other := TheseNamespaces([]string{"b", "a"}), TheseNamespaces([]string{"a", "bc"})
	if same.key != TheseNamespaces([]string{"a", "b"}).key || same.key == other.key || same.key == AllNamespaces().key || same.Include("c") || !AllNamespaces().Include("c") {
		t.Error("different sets are equal, or equal ones differ")
	}
}

// TestResume checks that a page resumes only if the same server has sent it the changes of the same namespaces before.
func TestResume(t *testing.T) {
	s := &Server{epoch: "now"}
	v := &Viewer{Sees: TheseNamespaces([]string{"a"})}
	for since, want := range map[string]uint64{"": 0, "now." + v.Sees.key + ".7": 7, "then." + v.Sees.key + ".7": 0, "now.all.7": 0, "now.7": 0, "now." + v.Sees.key + ".x": 0} {
		if got := s.resume(since, v); got != want {
			t.Errorf("%s: %d", since, got)
		}
	}
}

// TestViewer_AccessReviewFails checks the changes that an open page gets while the API server does not answer what its viewer
// may see, and that it continues afterwards. The page ends when the viewer may no longer see anything.
func TestViewer_AccessReviewFails(t *testing.T) {
	clock := testingclock.NewFakeClock(start)
	var answer atomic.Pointer[error]
	said := func(err error) { answer.Store(&err) }
	said(nil)
	streams := genericiooptions.NewTestIOStreamsDiscard()
	viewer := &Viewer{Console: console.New(streams, "v1", noClusters{}), Sees: TheseNamespaces([]string{"garden"}), Bounds: NewBounds(1, 1)}
	s, err := NewShared(SharedOptions{Clock: clock, Reads: 1, Streams: 1, Login: "token", Viewer: func(*http.Request) (*Viewer, error) {
		return viewer, *answer.Load()
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.store.inform(nil, newManagedResource("garden", "a", "1"))
	served := httptest.NewServer(s.Handler())
	defer served.Close()
	response, err := http.Get(served.URL + "/api/changes")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	told := make(chan News)
	go func() {
		defer close(told)
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			var news News
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is && json.Unmarshal([]byte(data), &news) == nil {
				told <- news
			}
		}
	}()
	next := func(what string, holds func(News, bool) bool) {
		t.Helper()
		for patience := time.After(2 * time.Minute); ; {
			select {
			case news, open := <-told:
				if holds(news, open) {
					return
				}
			case <-time.After(10 * time.Millisecond):
				clock.Step(heartbeat)
			case <-patience:
				t.Fatalf("timed out: %s", what)
			}
		}
	}
	next("the row is sent", func(news News, _ bool) bool { return len(news.Rows) == 1 })
	said(errors.New("refused"))
	next("the loss of the connection is sent", func(news News, _ bool) bool { return news.Lost == "refused" && len(news.Rows) == 0 })
	s.store.inform(nil, newManagedResource("garden", "b", "1"))
	said(nil)
	next("the stream resumes", func(news News, _ bool) bool {
		return news.Lost == "" && len(news.Rows) == 1 && news.Rows[0].Name == "b"
	})
	said(&DeniedError{Code: http.StatusUnauthorized, Reason: "expired"})
	next("the stream ends", func(_ News, open bool) bool { return !open })
}

// noClusters is a Clusters without a kubeconfig.
type noClusters struct{ console.Clusters }

// Kubeconfig returns nil.
func (noClusters) Kubeconfig() (config *clientcmdapi.Config, context string) { return nil, "" }

// TestBoundsOfOne checks that the number of pages of one viewer is limited, even if others could still open pages.
func TestBoundsOfOne(t *testing.T) {
	s := &Server{streams: make(chan struct{}, 9), store: newTestStore()}
	v := &Viewer{Bounds: NewBounds(1, 1)}
	v.Bounds.streams <- struct{}{}
	w := httptest.NewRecorder()
	s.serveChanges(w, httptest.NewRequest(http.MethodGet, "/api/changes", http.NoBody), v)
	if w.Code != http.StatusServiceUnavailable || len(s.streams) != 0 {
		t.Errorf("status %d, %d pages", w.Code, len(s.streams))
	}
}
