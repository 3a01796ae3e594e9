package eventlimit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
)

// A fake recorder: it keeps the resourceVersion, reason and note of each Event.
type told []string

func (t *told) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	version := "?"
	if ref, is := regarding.(*corev1.ObjectReference); is {
		version = ref.ResourceVersion
	}
	*t = append(*t, version+" "+reason+" "+fmt.Sprintf(note, args...))
}

func node(name, version string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", ResourceVersion: version}}
}

func TestRecorder(t *testing.T) {
	var written told
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	recorder := New(&written, clientgoscheme.Scheme, clock)
	says := func(what string, wanted ...string) {
		t.Helper()
		if !slices.Equal(written, wanted) {
			t.Errorf("%s: written is %q, want %q", what, written, wanted)
		}
		written = nil
	}
	tell := func(n *corev1.Node, reason, note string) {
		recorder.Eventf(n, nil, corev1.EventTypeWarning, reason, "Do", "%s", note)
	}

	tell(node("a", "1"), "Bad", "100% wrong")
	tell(node("a", "2"), "Bad", "100% wrong")
	says("a repeated Event has the version of the first one, so that client-go counts both as one", "1 Bad 100% wrong", "1 Bad 100% wrong")

	for i := range 100 {
		tell(node("a", fmt.Sprint(10+i)), "Bad", fmt.Sprint("note ", i))
	}
	says("further notes are written up to a total of five", "10 Bad note 0", "11 Bad note 1", "12 Bad note 2", "13 Bad note 3")
	tell(node("a", "200"), "Bad", "note 3")
	says("the last one may be repeated", "13 Bad note 3")

	tell(node("a", "200"), "Worse", "x")
	tell(node("b", "200"), "Bad", "x")
	says("another reason and another object have limits of their own", "200 Worse x", "200 Bad x")

	clock.Step(2 * refill)
	for i := range 10 {
		tell(node("a", fmt.Sprint(300+i)), "Bad", fmt.Sprint("later ", i))
	}
	says("after some minutes two more are written", "300 Bad later 0", "301 Bad later 1")

	clock.Step(sameFor)
	tell(node("a", "400"), "Bad", "later 1")
	says("an Event is repeated after a long time", "400 Bad later 1")

	recorder.Eventf(&corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "c", ResourceVersion: "1"}, nil, corev1.EventTypeNormal, "Good", "Do", "fine")
	says("a reference works like an object", "1 Good fine")
}

// TestUnknownKind checks that Events about objects of unknown kinds are passed to client-go, which logs the error.
func TestUnknownKind(t *testing.T) {
	var written told
	New(&written, runtime.NewScheme(), clocktesting.NewFakeClock(time.Unix(1e9, 0))).
		Eventf(node("a", "1"), nil, corev1.EventTypeNormal, "Good", "Do", "%d", 5)
	if !slices.Equal(written, []string{"? Good 5"}) {
		t.Errorf("written is %q", written)
	}
}

// TestManyObjects checks that memory is bounded for any number of objects.
func TestManyObjects(t *testing.T) {
	var written told
	recorder := New(&written, clientgoscheme.Scheme, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	for i := range 2 * remembered {
		recorder.Eventf(node(fmt.Sprint(i), "1"), nil, corev1.EventTypeNormal, "Good", "Do", "x")
	}
	if recorder.known.Len() != remembered || len(written) != 2*remembered {
		t.Errorf("%d objects are remembered, %d Events were written", recorder.known.Len(), len(written))
	}
}
