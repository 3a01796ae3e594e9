package nodeagent

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// turn says, as the resource-manager of the cluster does, which configuration all nodes may apply, and which node applies one first.
func (m *machine) turn(tried, first string) {
	m.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: m.pool}}
	kit.Change(m, m.admin, secret, func() {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, constants.AnnotationNodeAgentTriedChecksum, tried)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, constants.AnnotationNodeAgentFirstNode, first)
	})
}

// TestNodesWaitForTheFirst checks that a node applies a changed configuration when it is its turn: before the others of its pool, or after
// another one has run with it.
func TestNodesWaitForTheFirst(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "first")
	var waits atomic.Int32
	m.log = funcr.New(func(_, line string) {
		if strings.Contains(line, "when another node runs with it") {
			waits.Add(1)
		}
	}, funcr.Options{})
	one := m.offer(basic())
	m.turn("another", "other/"+one)
	m.start()
	m.join()
	m.applied(one) // a new machine does not wait
	m.turn(one, "")

	changed := basic()
	changed.Spec.Files[0] = textFile("/etc/a", "a2")
	two := m.offer(changed)
	kit.EventuallyTrue(t, "the node waits for another one", func() bool { return waits.Load() == 1 })
	m.turn(one, "other/"+two)
	m.turn(one, m.name+"/"+one) // for the previous configuration
	if m.read("/etc/a") != "a1" {
		t.Error("the node did not wait")
	}
	m.turn(one, m.name+"/"+two)
	m.applied(two)
	at, err := time.Parse(time.RFC3339, m.node().Annotations[constants.AnnotationNodeAgentAppliedAt])
	if err != nil || time.Since(at) > time.Hour {
		t.Errorf("the node says that it has applied the configuration at %s: %v", at, err)
	}

	changed.Spec.Files[0] = textFile("/etc/a", "a3")
	three := m.offer(changed)
	kit.EventuallyTrue(t, "the node waits again", func() bool { return waits.Load() == 2 })
	m.turn(three, "other/"+three)
	m.applied(three)
	if m.read("/etc/a") != "a3" || waits.Load() != 2 {
		t.Errorf("a is %q, the node waited %d times", m.read("/etc/a"), waits.Load())
	}
}
