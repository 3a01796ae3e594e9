package systemcomponents

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lister is a fake reader of nodes that counts the lists.
type lister struct {
	client.Reader
	items  []corev1.Node
	err    error
	listed int
	onlist func()
}

func (l *lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.listed++
	nodes, isNodes := list.(*corev1.NodeList)
	if !isNodes {
		return fmt.Errorf("%T must not be read", list)
	}
	nodes.Items = l.items
	if l.onlist != nil {
		l.onlist()
	}
	return l.err
}

// TestNodesAreLookedThroughWhenTaintsChange checks that nodes are not listed for every Pod, and not when the status of a node
// is updated.
func TestNodesAreLookedThroughWhenTaintsChange(t *testing.T) {
	tainted := node(map[string]string{"system": "true"}, corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule})
	reader := &lister{items: []corev1.Node{tainted}}
	nodes := newNodes(reader, map[string]string{"system": "true"})
	events := nodes.eventHandler()
	look := func(wantTolerations, wantListed int) {
		t.Helper()
		for range 100 {
			got, err := nodes.Tolerations(t.Context())
			if err != nil || len(got) != wantTolerations {
				t.Fatalf("got %v, %v", got, err)
			}
		}
		if reader.listed != wantListed {
			t.Fatalf("the nodes were listed %d times", reader.listed)
		}
	}
	look(1, 1)

	alive := tainted.DeepCopy()
	alive.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	alive.Annotations = map[string]string{"a": "b"}
	events.OnUpdate(&tainted, alive)
	look(1, 1)

	other := alive.DeepCopy()
	other.Spec.Taints = append(other.Spec.Taints, corev1.Taint{Key: "b", Effect: corev1.TaintEffectNoSchedule})
	reader.items = []corev1.Node{*other}
	events.OnUpdate(alive, other)
	look(2, 2)

	unlabelled := other.DeepCopy()
	unlabelled.Labels = nil
	reader.items = []corev1.Node{*unlabelled}
	events.OnUpdate(other, unlabelled)
	look(0, 3)

	reader.items = []corev1.Node{*unlabelled, tainted}
	events.OnAdd(&tainted, false)
	look(1, 4)

	reader.items = nil
	events.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: &tainted})
	look(0, 5)
}

// TestChangeDuringALook checks that a change during a list is noticed by the next call.
func TestChangeDuringALook(t *testing.T) {
	reader := &lister{}
	nodes := newNodes(reader, nil)
	reader.onlist = func() {
		reader.onlist = nil
		reader.items = []corev1.Node{node(nil, corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule})}
		nodes.eventHandler().OnAdd(&reader.items[0], false)
	}
	if got, err := nodes.Tolerations(t.Context()); err != nil || len(got) != 0 {
		t.Fatalf("got %v, %v", got, err)
	}
	if got, err := nodes.Tolerations(t.Context()); err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
}

// TestNodesThatCannotBeListed checks that a failure is not remembered, and that no outdated tolerations are returned.
func TestNodesThatCannotBeListed(t *testing.T) {
	reader := &lister{items: []corev1.Node{node(nil, corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule})}}
	nodes := newNodes(reader, nil)
	if _, err := nodes.Tolerations(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader.err = errors.New("no connection")
	nodes.eventHandler().OnAdd(&reader.items[0], false)
	for range 2 {
		if got, err := nodes.Tolerations(t.Context()); !errors.Is(err, reader.err) || got != nil {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	reader.err = nil
	if got, err := nodes.Tolerations(t.Context()); err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
}
