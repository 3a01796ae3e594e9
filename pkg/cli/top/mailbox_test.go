package top

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/gdamore/tcell/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

func TestMailbox(t *testing.T) {
	f := newMailbox()
	a, b := of("garden", "a", state.Ready, 1, ""), of("garden", "b", state.Ready, 1, "")
	if err := errors.Join(f.Replace([]any{a}, "1"), f.Add(b), f.Update(b), f.Delete(a), f.Resync()); err != nil {
		t.Fatal(err)
	}
	got, err := f.take()
	if err != nil || !got.replaced || len(got.items) != 2 || got.items[b.FullName()] != b || got.items[a.FullName()] != nil || len(f.news) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if got, _ = f.take(); got.replaced || got.items != nil {
		t.Errorf("the second take returned the same changes: %+v", got)
	}
	if f.Add("text") == nil {
		t.Error("a string is accepted as a ManagedResource")
	}
}

// TestErrors checks that permanent errors are distinguished from temporary ones.
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
		"no kind":                {apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true), false, true, true},
	} {
		f := newMailbox()
		f.works = test.works
		f.OnError(test.err)
		if got, err := f.take(); (got.lost != nil) != test.lost || (err != nil) != test.fails {
			t.Errorf("%s: %+v %v", name, got, err)
		}
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
