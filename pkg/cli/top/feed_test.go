package top

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/gdamore/tcell/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

func TestFeed(t *testing.T) {
	f := newFeed(nil, console.Choice{}, nil)
	a, b := of("garden", "a", state.Ready, 1, ""), of("garden", "b", state.Ready, 1, "")
	if err := errors.Join(f.Replace([]any{a}, "1"), f.Add(b), f.Update(b), f.Delete(a), f.Resync()); err != nil {
		t.Fatal(err)
	}
	got, err := f.take()
	if err != nil || !got.replaced || len(got.items) != 2 || got.items[b.name()] != b || got.items[a.name()] != nil || len(f.news) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if got, _ = f.take(); got.replaced || got.items != nil {
		t.Errorf("it is told twice: %+v", got)
	}
	if f.Add("text") == nil {
		t.Error("a text is taken for a ManagedResource")
	}
}

// TestOtherClass takes one whose class has changed for one that is gone.
func TestOtherClass(t *testing.T) {
	f := newFeed(nil, console.Choice{Class: "seed"}, nil)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if event, _ := f.reduce(watch.Event{Type: watch.Modified, Object: mr}); event.Type != watch.Deleted {
		t.Errorf("%+v", event)
	}
	class := "seed"
	mr.Spec.Class = &class
	event, _ := f.reduce(watch.Event{Type: watch.Modified, Object: mr})
	if is, isItem := event.Object.(*item); event.Type != watch.Modified || !isItem || is.class != "seed" {
		t.Errorf("%+v", event)
	}
	if event, _ := f.reduce(watch.Event{Type: watch.Bookmark, Object: mr}); event.Object != mr {
		t.Errorf("%+v", event)
	}
}

// TestErrors tells what is refused for good from what may pass.
func TestErrors(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))
	for name, test := range map[string]struct {
		err         error
		works       bool
		lost, fails bool
	}{
		"no connection":          {errors.New("connection refused"), false, true, false},
		"not permitted":          {forbidden, false, true, true},
		"not permitted any more": {forbidden, true, true, false},
		"too old":                {apierrors.NewResourceExpired("too old"), true, false, false},
		"no kind":                {apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true), false, true, true},
	} {
		f := newFeed(nil, console.Choice{}, nil)
		f.works = test.works
		f.noteError(t.Context(), test.err)
		if got, err := f.take(); (got.lost != nil) != test.lost || (err != nil) != test.fails {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	f := newFeed(nil, console.Choice{}, nil)
	f.noteError(ended, errors.New("context canceled"))
	if got, err := f.take(); got.lost != nil || err != nil {
		t.Errorf("that it ends is told as an error: %+v, %v", got, err)
	}
}

func TestKeysOf(t *testing.T) {
	for _, test := range []struct {
		event *tcell.EventKey
		want  []string
	}{
		{tcell.NewEventKey(tcell.KeyRune, 'j', tcell.ModNone), []string{"j"}},
		{tcell.NewEventKey(tcell.KeyRune, '/', tcell.ModAlt), []string{keyEscape, "/"}},
		{tcell.NewEventKey(tcell.KeyBackspace2, 0, tcell.ModNone), []string{keyBackspace}},
		{tcell.NewEventKey(tcell.KeyEscape, 0, tcell.ModNone), []string{keyEscape}},
		{tcell.NewEventKey(tcell.KeyCtrlC, 0, tcell.ModCtrl), []string{keyInterrupt}},
		{tcell.NewEventKey(tcell.KeyF5, 0, tcell.ModNone), nil},
	} {
		if got := keysOf(test.event); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.event.Name(), got, test.want)
		}
	}
}
