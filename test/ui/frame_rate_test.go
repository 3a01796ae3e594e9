package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

// steps is a script that calls a function once for each frame and returns the durations of the frames in milliseconds.
const steps = `(async (count, step) => {
	const frame = () => new Promise(requestAnimationFrame), frames = [];
	let before = await frame();
	for (let at = 0; at < count; at++) {
		step(at);
		const now = await frame();
		frames.push(now - before);
		before = now;
	}
	frames.sort((a, b) => a - b);
	return { median: frames[Math.floor(count / 2)], slow: frames[Math.floor(count * 0.95)], most: frames.at(-1) };
})`

// call sends a command to the browser.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) {
	p.t.Helper()
	kit.Must(p.t, chromedp.Do(p, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})))
}

// traced is an event of a trace.
type traced struct {
	Name, Ph string
	Pid, Tid int
	// Tdur is the CPU time of a task, in microseconds.
	Tdur float64
	Args struct{ Name string }
}

// tasks traces the tasks of the page's thread until end is called. end returns their CPU times in milliseconds in ascending order. In
// contrast to frames, they do not depend on the load of the machine.
func (p *tab) tasks() (end func() []float64) {
	p.t.Helper()
	var mu sync.Mutex
	var events []traced
	var once sync.Once
	complete := make(chan struct{})
	ctx, cancel := context.WithCancel(p)
	kit.Must(p.t, chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch event := event.(type) {
		case *tracing.EventDataCollected:
			for _, raw := range event.Value {
				var each traced
				if json.Unmarshal(raw, &each) == nil {
					events = append(events, each)
				}
			}
		case *tracing.EventTracingComplete:
			once.Do(func() { close(complete) })
		}
	}))
	call(p, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "__metadata"}}})
	return func() []float64 {
		p.t.Helper()
		defer cancel()
		call(p, tracing.End, cdp.Empty{})
		kit.EventuallyTrue(p.t, "the trace is complete", func() bool {
			select {
			case <-complete:
				return true
			default:
				return false
			}
		})
		mu.Lock()
		defer mu.Unlock()
		return tasksOfPages(events)
	}
}

// tasksOfPages returns the CPU times of the tasks of page threads in milliseconds, in ascending order.
func tasksOfPages(events []traced) []float64 {
	type thread struct{ process, thread int }
	pages := map[thread]bool{}
	for _, each := range events {
		if each.Ph == "M" && each.Name == "thread_name" && each.Args.Name == "CrRendererMain" {
			pages[thread{each.Pid, each.Tid}] = true
		}
	}
	found := []float64{0}
	for _, each := range events {
		if pages[thread{each.Pid, each.Tid}] && strings.HasSuffix(each.Name, "RunTask") {
			found = append(found, each.Tdur/1000)
		}
	}
	slices.Sort(found)
	return found
}

// TestSmoothness measures the durations of frames and the CPU times of tasks with 10,000 objects in 100 groups while they are scrolled,
// folded and filtered. For comparison, it also measures the idle page.
func TestSmoothness(t *testing.T) {
	if !*figures {
		t.Skip("measures: make test-ui UI=TestSmoothness UIFLAGS='-ui.figures -v'")
	}
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "large", state.Ready, settings("large"))
	s := w.serveThrough(t, namespace, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/large/objects") {
				next.ServeHTTP(w, r)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"value": map[string]any{"nodes": manyNodes(namespace)}})
		})
	})
	p := s.open(t, "#/mr/"+namespace+"/large?tab=tree")
	p.await("all objects are shown", fmt.Sprintf(`document.querySelector("[role=treegrid]")?.ariaRowCount === "%d"`, manyObjects+1))
	for _, each := range []struct{ what, step string }{
		{"nothing", `() => {}`},
		{"scrolling by a screen for each frame", `(at) => { document.querySelector(".virtual").scrollTop = (at % 100) * 800; }`},
		{"jumping to and fro", `(at) => { document.querySelector(".virtual").scrollTop = (at % 2) * 250000 + at * 30; }`},
		{"moving by keys", `(at) => document.querySelector(".virtual").dispatchEvent(new KeyboardEvent("keydown", { key: at % 20 === 19 ? "End" : "ArrowDown", bubbles: true }))`},
		{"folding and unfolding", `(at) => { if (at === 0) document.querySelector(".virtual").dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
			document.querySelector(".virtual").dispatchEvent(new KeyboardEvent("keydown", { key: at % 2 ? "ArrowRight" : "ArrowLeft", bubbles: true })); }`},
		{"filtering by a letter for each frame", `(at) => { const input = document.querySelector(".panel input"); input.value = "pod group-7".slice(0, at % 12); input.dispatchEvent(new Event("input")); }`},
	} {
		end := p.tasks()
		found, err := chromedp.Run(p, chromedp.Evaluate[struct{ Median, Slow, Most float64 }](fmt.Sprintf("%s(120, %s)", steps, each.step), chromedp.EvalAwaitPromise))
		kit.Must(t, err)
		tasks := end()
		sum := 0.0
		for _, task := range tasks {
			sum += task
		}
		t.Logf("%s: a frame took %.0f ms (median), %.0f ms (95 of 100), %.0f ms at most; CPU time: %.1f ms for each frame, and %.1f ms for the longest of %d tasks",
			each.what, found.Median, found.Slow, found.Most, sum/120, tasks[len(tasks)-1], len(tasks))
	}
}

// manyNodes returns a tree of groups with the objects that they own.
func manyNodes(namespace string) []map[string]any {
	const groups = 100
	var nodes []map[string]any
	for i := range manyObjects {
		group := i / (manyObjects / groups)
		if i%(manyObjects/groups) == 0 {
			nodes = append(nodes, map[string]any{"level": 1, "api": "apps/v1", "kind": "ReplicaSet", "namespace": namespace, "name": fmt.Sprintf("group-%d", group), "health": "Healthy", "sync": "Synced", "created": 1})
			continue
		}
		nodes = append(nodes, map[string]any{"level": 2, "api": "v1", "kind": "Pod", "namespace": namespace, "name": fmt.Sprintf("group-%d-%d", group, i), "health": "Present", "detail": "Running on node-1", "created": 1})
	}
	return nodes
}
