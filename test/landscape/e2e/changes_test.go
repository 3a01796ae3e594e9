package e2e

import (
	"context"
	"fmt"
	"runtime"
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

// TestShootsChanging creates, changes and deletes Shoots in real containers all the time, as many by turns as -landscape.shoots
// says. Next to them is one that never starts, and those of TestShootDeletions come and go. No other Shoot reports an error at any
// moment. An idle control plane costs a tenth of a CPU, so at most one more of the Shoots exist at once than this machine has CPUs.
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
	exist, change := make(chan struct{}, runtime.NumCPU()+1), make(chan struct{}, max(1, runtime.NumCPU()/2))
	for i := range rounds {
		users.Go(func() {
			key := client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: fmt.Sprintf("changing-%02d", i)}
			for ctx.Err() == nil {
				select {
				case exist <- struct{}{}:
				case <-ctx.Done():
					return
				}
				err := c.live(f, key, change, times)
				<-exist
				if err != nil {
					t.Errorf("round %d of %s: %v", rounds[i]+1, key.Name, err)
					return
				}
				rounds[i]++
			}
		})
	}
	watch, stop := context.WithCancel(c.ctx)
	failures := make(chan map[string]int, 1)
	go func() { failures <- c.errorsOfOthers(watch, f) }()
	troubled := map[string]bool{broken.Name: true}
	for i := 0; ctx.Err() == nil; i++ {
		deletion := deletions[i%len(deletions)]
		troubled[deletion.name] = true
		t.Run(deletion.name, func(t *testing.T) { c.in(t).delete(f, deletion) })
	}
	users.Wait()
	stop()
	for text, times := range <-failures {
		t.Logf("%d times: %s", times, text)
		if name, _, _ := strings.Cut(text, ": "); !troubled[name] {
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

// live is the life of one Shoot: it is created, changed, and deleted. Only half as many Shoots change at once as this machine has CPUs, next to
// the deletions: API servers that start together on fewer need minutes.
func (c *cluster) live(f *fleet.Fleet, key client.ObjectKey, changes chan struct{}, times *lives) error {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	var took [3]time.Duration
	for i, step := range []func() error{
		func() error { _, err := f.CreateShoots(c.ctx, key); return err },
		func() error {
			if err := f.Patch(c.ctx, shoot, client.RawPatch("application/merge-patch+json",
				[]byte(`{"spec":{"kubernetes":{"kubeAPIServer":{"eventTTL":"2h"}}}}`))); err != nil {
				return fmt.Errorf("change Shoot %s: %w", key, err)
			}
			return f.AwaitShoot(c.ctx, key)
		},
		func() error { return f.DeleteConfirmed(c.ctx, shoot) },
	} {
		changes <- struct{}{}
		began := time.Now()
		err := step()
		took[i] = time.Since(began)
		<-changes
		if err != nil {
			return err
		}
	}
	times.add(took[0], took[1], took[2])
	return nil
}
