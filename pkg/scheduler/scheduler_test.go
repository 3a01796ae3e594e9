package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestNeverTwoIntoTheLastPlace creates and deletes Shoots while the watch lags behind, results of bindings are lost, and the scheduler is killed. No Seed
// ever hosts more than it can. In the end, all places are used, without a wake-up by time.
func TestNeverTwoIntoTheLastPlace(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, rand.New(rand.NewPCG(seed, 1)), 2, places)
		w.faults = 30
		for i := range 150 {
			switch w.IntN(8) {
			case 0, 1:
				w.create(fmt.Sprintf("shoot-%d", i))
			case 2:
				if w.IntN(2) == 0 {
					w.deleteOne()
				}
			case 3, 4:
				w.reconcile()
			case 5, 6:
				w.deliver()
			case 7:
				if w.IntN(5) == 0 {
					w.restart()
				}
			}
		}
		w.faults = 0
		w.settle()
		bound := 0
		for _, shoot := range w.live {
			if shoot.Spec.SeedName != nil {
				bound++
			} else if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStatePending {
				t.Errorf("run %d: Shoot %s has no Seed, and its last operation is %v", seed, shoot.Name, last)
			}
		}
		if want := min(len(w.live), places*len(w.seeds)); bound != want {
			t.Fatalf("run %d: %d of %d Shoots have a Seed, want %d", seed, bound, len(w.live), want)
		}
		written := w.reports
		w.restart()
		w.settle()
		if w.reports != written {
			t.Errorf("run %d: a restart wrote %d statuses", seed, w.reports-written)
		}
	}
}

// settle delivers all events and handles all requests.
func (w *world) settle() {
	for len(w.later) > 0 || w.queue.Len() > 0 {
		w.deliver()
		w.reconcile()
	}
}

func (w *world) deleteOne() {
	keys := slices.SortedFunc(maps.Keys(w.live), func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	if len(keys) > 0 {
		w.write(keys[w.IntN(len(keys))], nil)
	}
}

// BenchmarkPending decides on 10,000 Shoots with 200 Seeds, which have a place for each, with a simulated API server. It reports decisions per second.
func BenchmarkPending(b *testing.B) {
	const pending = 10000
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b, rand.New(rand.NewPCG(1, 1)), 200, pending/200)
		for i := range pending {
			w.create(fmt.Sprintf("shoot-%d", i))
		}
		for len(w.later) > 0 {
			w.deliver()
		}
		b.StartTimer()
		for w.queue.Len() > 0 {
			request, _ := w.queue.Get()
			if _, err := w.scheduler.Reconcile(b.Context(), request); err != nil {
				b.Fatal(err)
			}
			w.queue.Done(request)
		}
		b.StopTimer()
		for _, shoot := range w.live {
			if shoot.Spec.SeedName == nil {
				b.Fatalf("Shoot %s has no Seed", shoot.Name)
			}
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(pending*b.N)/b.Elapsed().Seconds(), "shoots/s")
}
