package garbage

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/references"
)

var (
	objects = flag.Int("gc.objects", 500, "number of ConfigMaps of TestManyObjects; every 20th is unused")
	qps     = flag.Float64("gc.qps", -1, "requests per second of the garbage collector in TestManyObjects; 100 by default in the binary")
)

// TestManyObjects checks that of many ConfigMaps, exactly the unreferenced ones are deleted. Each Pod references ten.
func TestManyObjects(t *testing.T) {
	f := newFixture(t)
	config := shared.Get(t).Config()
	config.QPS, config.Burst = float32(*qps), 130
	f.registry = prometheus.NewRegistry()
	f.collector = f.newCollector(config, f.namespace)
	name := func(i int) string { return fmt.Sprintf("c-%06d", i) }
	started := time.Now()
	var group errgroup.Group
	group.SetLimit(16)
	for start := 0; start < *objects; start += 10 {
		group.Go(func() error {
			pod := &corev1.Pod{ObjectMeta: f.metaOf(fmt.Sprintf("p-%06d", start), nil), Spec: template(nil).Spec}
			pod.Annotations = map[string]string{}
			for i := start; i < min(start+10, *objects); i++ {
				data := map[string]string{"a": strings.Repeat("x", 1000)}
				if err := f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: f.metaOf(name(i), marked), Data: data}); err != nil {
					return err
				}
				if i%20 != 0 {
					pod.Annotations[references.AnnotationKey(references.KindConfigMap, name(i))] = name(i)
				}
			}
			return f.client.Create(f.ctx, pod)
		})
	}
	must(t, group.Wait())
	t.Logf("created %d ConfigMaps in %s", *objects, time.Since(started).Round(time.Millisecond))

	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := watchHeap()
	started = time.Now()
	f.requests.take()
	f.collect()
	t.Logf("collected in %s with %d requests; heap %.1f MiB before, %.1f MiB at most", time.Since(started).Round(time.Millisecond),
		len(f.requests.take()), mebibytes(before.HeapAlloc), mebibytes(peak()))

	var want []string
	for i := range *objects {
		if i%20 != 0 {
			want = append(want, name(i))
		}
	}
	f.wantLeft(want...)
	if got := f.metric("garbage_collected_total", "ConfigMap"); got != float64((*objects+19)/20) {
		t.Errorf("%f ConfigMaps were deleted", got)
	}
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// watchHeap measures the heap until the returned function is called, which returns the maximum.
func watchHeap() func() uint64 {
	var most atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), now.HeapAlloc))
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return most.Load()
	}
}
