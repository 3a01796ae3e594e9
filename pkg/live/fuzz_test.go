package live

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-k8s/trellis/test/random"
)

// FuzzStore creates, changes, deletes, labels and unlabels objects, as the store's own process and as other clients. The watch
// lags behind and sometimes restarts with a list. Responses to the process's own writes are delayed, too. Whenever the watch
// has delivered all events, the store must have the same objects as the cluster, and the listener must have been notified of
// all changes that it did not make itself.
func FuzzStore(f *testing.F) {
	f.Add([]byte{})
	for i := range byte(40) {
		f.Add([]byte{i, i * 3, i * 5, i * 7, i * 11, i * 13, i * 17, i * 19, i * 23, i * 29, i * 31, i * 37})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newShownCluster(t, random.From(data))
		for range 60 {
			c.step()
		}
		c.settle()
	})
}

// shownCluster is the state of a cluster, in the API server and as shown to a store.
type shownCluster struct {
	*testing.T
	*rand.Rand
	store   *store
	parts   map[string]*part
	version int
	// objects are the existing objects. An object without an origin lacks the label, and no watch shows it.
	objects map[types.NamespacedName]*metav1.PartialObjectMetadata
	// events are the watch events that are not delivered yet, in order. answers are the pending responses to the process's own
	// writes.
	events  []func() error
	answers []*metav1.PartialObjectMetadata
	// known are the UIDs of the objects that the listener knows to exist.
	known map[types.NamespacedName]types.UID
}

func newShownCluster(t *testing.T, r *rand.Rand) *shownCluster {
	t.Helper()
	c := &shownCluster{
		T: t, Rand: r, version: 100, parts: map[string]*part{},
		objects: map[types.NamespacedName]*metav1.PartialObjectMetadata{}, known: map[types.NamespacedName]types.UID{},
	}
	c.store = &store{
		clock:   clocktesting.NewFakePassiveClock(time.Unix(1, 0)),
		objects: held{}, shown: map[string]string{}, healthChanged: func(string) {},
		perNamespace: r.IntN(2) == 0,
		changed:      func(key types.NamespacedName) { c.learn(key) },
	}
	namespaces := []string{metav1.NamespaceAll}
	if c.store.perNamespace {
		namespaces = []string{"a", "b"}
	}
	for _, namespace := range namespaces {
		c.parts[namespace] = &part{store: c.store, synced: func() {}, failed: func(error) {}, namespace: namespace}
	}
	c.list()
	return c
}

// learn simulates that the listener reads an object from the store.
func (c *shownCluster) learn(key types.NamespacedName) {
	delete(c.known, key)
	if held, found := c.store.get(key); found {
		c.known[key] = held.UID
	}
}

// step performs one random action.
func (c *shownCluster) step() {
	c.Helper()
	key := types.NamespacedName{Namespace: string(rune('a' + c.IntN(2))), Name: "o" + strconv.Itoa(c.IntN(2))}
	switch c.IntN(9) {
	case 0, 1:
		c.answers = append(c.answers, c.write(key))
	case 2:
		c.write(key)
	case 3:
		c.delete(key)
	case 4:
		c.unlabel(key)
	case 5:
		c.deleteOurselves(key)
	case 6:
		c.show()
	case 7:
		c.answer()
	case 8:
		if c.IntN(5) == 0 {
			c.list()
		}
	}
}

// write creates or updates an object, with its label.
func (c *shownCluster) write(key types.NamespacedName) *metav1.PartialObjectMetadata {
	c.version++
	before := c.objects[key]
	after := metaOf(key.Namespace, key.Name, strconv.Itoa(c.version), "shop")
	after.UID = types.UID("created at " + after.ResourceVersion)
	if before != nil {
		after.UID = before.UID
	}
	c.objects[key] = after
	c.later(key, func(p *part) error { return p.Update(after) })
	return after
}

func (c *shownCluster) delete(key types.NamespacedName) {
	if before := c.objects[key]; before != nil {
		c.version++
		delete(c.objects, key)
		c.hide(key, before)
	}
}

// unlabel removes the label of an object, which the watch shows as a deletion.
func (c *shownCluster) unlabel(key types.NamespacedName) {
	if before := c.objects[key]; before != nil {
		c.version++
		after := before.DeepCopy()
		after.ResourceVersion, after.Annotations = strconv.Itoa(c.version), nil
		c.objects[key] = after
		c.hide(key, before)
	}
}

// hide schedules the DELETE event of an object, if the watch has shown the object.
func (c *shownCluster) hide(key types.NamespacedName, before *metav1.PartialObjectMetadata) {
	if len(before.Annotations) == 0 {
		return
	}
	last := before.DeepCopy()
	last.ResourceVersion = strconv.Itoa(c.version)
	c.later(key, func(p *part) error { return p.Delete(last) })
}

// deleteOurselves deletes an object and records the deletion in the store immediately.
func (c *shownCluster) deleteOurselves(key types.NamespacedName) {
	if before := c.objects[key]; before != nil {
		c.delete(key)
		c.store.drop(key, before.UID)
		c.learn(key)
	}
}

// later schedules a watch event. Events are delivered in the order in which they occurred.
func (c *shownCluster) later(key types.NamespacedName, show func(*part) error) {
	p := c.parts[c.store.scope(key.Namespace)]
	c.events = append(c.events, func() error { return show(p) })
}

// show delivers the next watch event.
func (c *shownCluster) show() {
	c.Helper()
	if len(c.events) > 0 {
		must(c.T, c.events[0]())
		c.events = c.events[1:]
	}
	c.compare()
}

// answer delivers a random pending response to one of the process's own writes.
func (c *shownCluster) answer() {
	c.Helper()
	if len(c.answers) == 0 {
		return
	}
	i := c.IntN(len(c.answers))
	answer := c.answers[i]
	c.answers = append(c.answers[:i:i], c.answers[i+1:]...)
	key := types.NamespacedName{Namespace: answer.Namespace, Name: answer.Name}
	observation := Observe(answer, c.store.observer.policy)
	difference := c.store.recordWrite(key, &observation)
	if difference.decision {
		c.learn(key) // the writer is the listener and knows the change
	}
	c.compare()
}

// list restarts the watches with a list of the existing objects.
func (c *shownCluster) list() {
	c.Helper()
	c.events = nil
	for namespace, p := range c.parts {
		var listed []any
		for key, object := range c.objects {
			if len(object.Annotations) > 0 && (namespace == metav1.NamespaceAll || namespace == key.Namespace) {
				listed = append(listed, object)
			}
		}
		must(c.T, p.Replace(listed, strconv.Itoa(c.version)))
	}
	c.compare()
}

// settle delivers all events and responses.
func (c *shownCluster) settle() {
	c.Helper()
	for len(c.events)+len(c.answers) > 0 {
		if c.IntN(2) == 0 {
			c.show()
		} else {
			c.answer()
		}
	}
	c.compare()
}

// compare checks the store if the watch has delivered all events.
func (c *shownCluster) compare() {
	c.Helper()
	if len(c.events) > 0 {
		return
	}
	want, got := map[types.NamespacedName]string{}, map[types.NamespacedName]string{}
	for key, object := range c.objects {
		if len(object.Annotations) > 0 {
			want[key] = object.ResourceVersion
		}
	}
	for key := range c.store.objects {
		held := c.store.objects.get(key)
		got[key] = held.ResourceVersion
		if c.known[key] != held.UID {
			c.Errorf("the store has %s with UID %q, but the listener was not notified and knows %q", key, held.UID, c.known[key])
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.Errorf("the store has %v, but the cluster has %v", got, want)
	}
	for key := range c.known {
		if c.store.objects[key] == nil {
			c.Errorf("%s is deleted, but the listener was not notified", key)
		}
	}
}
