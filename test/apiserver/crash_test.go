package apiserver

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestAcknowledgedWritesSurvive kills the API server while many clients write. Every acknowledged write still exists
// afterwards. The test has its own garden, because other tests would fail in the meantime.
func TestAcknowledgedWritesSurvive(t *testing.T) {
	const writers, before = 50, 200
	g := startGarden(t)
	c := newClientFor(t, g)
	ensureNamespace(t, c, "garden-crash")
	var mutex sync.Mutex
	var written []string
	reached, killed := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("writer-%d-%d", writer, i)
				err := c.Create(t.Context(), &gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-crash", Name: name}})
				mutex.Lock()
				if err == nil {
					if written = append(written, name); len(written) == before {
						close(reached)
					}
				}
				mutex.Unlock()
				select {
				case <-killed:
					return
				default:
				}
			}
		})
	}
	<-reached
	kit.Must(t, g.KillAPIServer())
	close(killed)
	all.Wait()
	kit.Must(t, g.StartAPIServer(t.Context()))

	secrets := &gardencorev1beta1.InternalSecretList{}
	kit.Must(t, c.List(t.Context(), secrets, client.InNamespace("garden-crash")))
	found := map[string]bool{}
	for _, secret := range secrets.Items {
		found[secret.Name] = true
	}
	for _, name := range written {
		if !found[name] {
			t.Errorf("the acknowledged write of %s is lost", name)
		}
	}
	t.Logf("%d writes were acknowledged", len(written))
}
