package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// TestShootsChanging creates, changes and deletes Shoots in real containers all the time, as many at once as -landscape.shoots
// says. One of them never starts. No other Shoot reports an error at any moment.
func TestShootsChanging(t *testing.T) {
	if *changing == 0 {
		t.Skip("takes as long as it is told to: -landscape.changing 30m -landscape.shoots 6")
	}
	c, f := onFleet(t)
	c.reduceRequests()
	must(t, f.Up(c.ctx))
	c.offer(f, missingVersion)
	ctx, cancel := context.WithTimeout(c.ctx, *changing)
	defer cancel()

	broken := client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: "broken"}
	must(t, f.CreateShoot(c.ctx, broken, missingVersion))
	var users sync.WaitGroup
	rounds := make([]int, max(*shoots, 1))
	for i := range rounds {
		users.Go(func() {
			key := client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: fmt.Sprintf("changing-%02d", i)}
			for ctx.Err() == nil {
				if err := c.live(f, key); err != nil {
					t.Errorf("round %d of %s: %v", rounds[i]+1, key.Name, err)
					return
				}
				rounds[i]++
			}
		})
	}
	reported, err := c.errorsOfOthers(ctx, f)
	must(t, err)
	users.Wait()
	for text, times := range reported {
		t.Logf("%d times: %s", times, text)
		if !strings.HasPrefix(text, broken.Name+": ") {
			t.Errorf("a Shoot reported an error: %s", text)
		}
	}
	t.Logf("lives of Shoots, created, changed and deleted, in %s: %v", *changing, rounds)
	c.deleteShoot(f, broken, false)
}

// live is the life of one Shoot: it is created, changed, and deleted.
func (c *cluster) live(f *fleet.Fleet, key client.ObjectKey) error {
	if _, err := f.CreateShoots(c.ctx, key); err != nil {
		return err
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := f.Patch(c.ctx, shoot, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"kubernetes":{"kubeAPIServer":{"eventTTL":"2h"}}}}`))); err != nil {
		return fmt.Errorf("change Shoot %s: %w", key, err)
	}
	if err := f.AwaitShoot(c.ctx, key); err != nil {
		return err
	}
	return f.DeleteConfirmed(c.ctx, shoot)
}
