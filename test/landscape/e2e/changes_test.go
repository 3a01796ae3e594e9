package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	rounds, times := make([]int, max(*shoots, 1)), &lives{}
	for i := range rounds {
		users.Go(func() {
			key := client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: fmt.Sprintf("changing-%02d", i)}
			for ctx.Err() == nil {
				if err := c.live(f, key, times); err != nil {
					t.Errorf("round %d of %s: %v", rounds[i]+1, key.Name, err)
					return
				}
				rounds[i]++
			}
		})
	}
	watch, stop := context.WithCancel(c.ctx)
	go func() { users.Wait(); stop() }()
	for text, times := range c.errorsOfOthers(watch, f) {
		t.Logf("%d times: %s", times, text)
		if !strings.HasPrefix(text, broken.Name+": ") {
			t.Errorf("a Shoot reported an error: %s", text)
		}
	}
	t.Logf("lives of Shoots, created, changed and deleted, in %s: %v\n%s", *changing, rounds, times)
	c.deleteShoot(f, broken, false)
}

// lives are the times that the steps of the lives of Shoots took.
type lives struct {
	mu                        sync.Mutex
	created, changed, removed []time.Duration
}

// add records the times of one life.
func (l *lives) add(created, changed, removed time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created, l.changed, l.removed = append(l.created, created), append(l.changed, changed), append(l.removed, removed)
}

// String returns the number of lives, and the median and the maximum of the times of each step.
func (l *lives) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf("%d lives", len(l.created))
	for _, step := range []struct {
		name  string
		times []time.Duration
	}{{"created", l.created}, {"changed", l.changed}, {"deleted", l.removed}} {
		if times := slices.Sorted(slices.Values(step.times)); len(times) > 0 {
			text += fmt.Sprintf("; %s in %s, at most %s", step.name, times[len(times)/2].Round(time.Second), times[len(times)-1].Round(time.Second))
		}
	}
	return text
}

// live is the life of one Shoot: it is created, changed, and deleted.
func (c *cluster) live(f *fleet.Fleet, key client.ObjectKey, times *lives) error {
	began := time.Now()
	if _, err := f.CreateShoots(c.ctx, key); err != nil {
		return err
	}
	created := time.Now()
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := f.Patch(c.ctx, shoot, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"kubernetes":{"kubeAPIServer":{"eventTTL":"2h"}}}}`))); err != nil {
		return fmt.Errorf("change Shoot %s: %w", key, err)
	}
	if err := f.AwaitShoot(c.ctx, key); err != nil {
		return err
	}
	changed := time.Now()
	if err := f.DeleteConfirmed(c.ctx, shoot); err != nil {
		return err
	}
	times.add(created.Sub(began), changed.Sub(created), time.Since(changed))
	return nil
}
