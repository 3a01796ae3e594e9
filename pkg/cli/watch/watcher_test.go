package watch

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

type summary struct {
	Meta
	class string
}

func (s *summary) DeepCopyObject() runtime.Object { return s }

// sink records the calls.
type sink struct {
	cache.ReflectorStore
	read   int
	failed error
}

func (s *sink) OnSynced()            {}
func (s *sink) OnProgress(count int) { s.read += count }
func (s *sink) OnError(err error)    { s.failed = err }

func newTestWatcher(choice console.Choice) (*Watcher[*summary], *sink) {
	s := &sink{}
	return &Watcher[*summary]{Choice: choice, Sink: s, Summarize: func(mr *resourcesv1alpha1.ManagedResource) *summary {
		return &summary{MetaOf(mr), state.ClassOf(mr)}
	}}, s
}

// TestOtherClass checks that a ManagedResource whose class changed counts as deleted.
func TestOtherClass(t *testing.T) {
	w, s := newTestWatcher(console.Choice{Class: "seed"})
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if event, _ := w.reduce(watch.Event{Type: watch.Modified, Object: mr}); event.Type != watch.Deleted {
		t.Errorf("%+v", event)
	}
	class := "seed"
	mr.Spec.Class = &class
	event, _ := w.reduce(watch.Event{Type: watch.Modified, Object: mr})
	if is, isSummary := event.Object.(*summary); event.Type != watch.Modified || !isSummary || is.class != "seed" || is.FullName().Name != "a" {
		t.Errorf("%+v", event)
	}
	if event, _ := w.reduce(watch.Event{Type: watch.Bookmark, Object: mr}); event.Object != mr {
		t.Errorf("%+v", event)
	}
	if s.read != 2 {
		t.Errorf("%d objects were read", s.read)
	}
}

// TestIgnoredErrors checks that an expired resourceVersion and the end of the context are not reported as errors.
func TestIgnoredErrors(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx   context.Context
		err   error
		fails bool
	}{
		"no connection": {t.Context(), errors.New("connection refused"), true},
		"too old":       {t.Context(), apierrors.NewResourceExpired("too old"), false},
		"ended":         {ended, errors.New("context canceled"), false},
	} {
		w, s := newTestWatcher(console.Choice{})
		if w.fail(test.ctx, test.err); (s.failed != nil) != test.fails {
			t.Errorf("%s: %v", name, s.failed)
		}
	}
}
