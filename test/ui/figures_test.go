package ui

import (
	"bufio"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

var figures = flag.Bool("ui.figures", false, "measure a list of 3,000 and a tree of 10,000 objects (minutes; make test-ui UI=TestFigures UIFLAGS=-ui.figures)")

const (
	manyResources = 3000
	manyObjects   = 10_000
)

// TestFigures measures how long the page takes to show large amounts of data, the size of the transfer, and the memory it needs.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("takes minutes: make test-ui UI=TestFigures UIFLAGS=-ui.figures")
	}
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	w.fill(t, namespace)
	before := heap()
	s := w.serve(t, "-n", namespace)
	until(t, s.follow(t, ""), func(told news) bool { return len(told.Rows) > manyResources })
	t.Logf("memory of the server with %d ManagedResources: %.1f MiB", manyResources, float64(heap()-before)/(1<<20))
	plain, zipped := s.sizeOfAll(t)
	t.Logf("rows of %d ManagedResources: %d KiB, compressed to %d KiB", manyResources, plain>>10, zipped>>10)
	p := s.open(t, "#/")
	s.measure(t, p, "list of 3,000", "#/", `document.querySelector("[role=grid]")?.ariaRowCount === "3002"`)
	s.measure(t, p, "tree of 10,000", "#/mr/"+namespace+"/large?tab=tree", `document.querySelector("[role=treegrid]")?.ariaRowCount === "10001" && performance.getEntriesByName("known").length > 0`)
}

// measurements are the browser's measurements of one load of the page, by name.
const measurements = `(() => {
	const all = performance.getEntriesByType("resource"), mark = (name) => performance.getEntriesByName(name).at(-1)?.startTime;
	const asked = (part) => all.find((e) => e.name.endsWith("/" + part));
	return Object.fromEntries([
		["first paint, ms", performance.getEntriesByName("first-contentful-paint")[0]?.startTime], ["rows on the screen, ms", mark("shown")],
		["how objects are on the screen, ms", mark("known")], ["objects asked for, ms", asked("objects")?.startTime], ["objects answered, ms", asked("objects")?.responseEnd],
		["inventory, KiB", asked("inventory")?.encodedBodySize / 1024], ["objects, KiB", asked("objects")?.encodedBodySize / 1024], ["objects before compression, KiB", asked("objects")?.decodedBodySize / 1024],
		["page, style and script, KiB", all.filter((e) => e.name.includes("/assets/")).reduce((sum, e) => sum + e.encodedBodySize, performance.getEntriesByType("navigation")[0].encodedBodySize) / 1024],
		["rows in the page", document.querySelectorAll(".rows .row").length], ["memory of the page, KiB", performance.memory.usedJSHeapSize / 1024],
	].filter(([, found]) => Number.isFinite(found)));
})()`

// loads is the number of loads of the page. The median is reported.
const loads = 9

// measure reloads the page at a location and reports the browser's measurements.
func (s *site) measure(t *testing.T, p *tab, name, hash, ready string) {
	t.Helper()
	found := map[string][]float64{}
	for range loads {
		kit.Must(t, chromedp.Do(p, chromedp.Navigate("about:blank"), chromedp.Navigate(s.base+"/"+hash)))
		p.await(name, ready+` && document.querySelectorAll(".rows .row").length > 10`)
		for what, each := range value[map[string]float64](p, measurements) {
			found[what] = append(found[what], each)
		}
	}
	load, _ := os.ReadFile("/proc/loadavg") // does not exist on every system
	t.Logf("%s, the median of %d loads, the minimum and the maximum; load of the machine %s", name, loads, load)
	for _, what := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[what])
		t.Logf("%s: %s: %.0f (%.0f to %.0f)", name, what, found[what][len(found[what])/2], found[what][0], found[what][len(found[what])-1])
	}
}

// sizeOfAll returns the size of the first event for a page, uncompressed and as sent.
func (s *site) sizeOfAll(t *testing.T) (plain, zipped int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/api/changes", http.NoBody)
	kit.Must(t, err)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := s.http.Do(request)
	kit.Must(t, err)
	defer func() { _ = response.Body.Close() }()
	counted := &counter{Reader: response.Body}
	unzipped, err := gzip.NewReader(counted)
	kit.Must(t, err)
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
	}
	return len(lines.Text()), counted.read
}

// counter counts the bytes that are read.
type counter struct {
	io.Reader
	read int
}

// Read reads.
func (c *counter) Read(into []byte) (int, error) {
	count, err := c.Reader.Read(into)
	c.read += count
	return count, err
}

// heap returns the memory in use by the process that runs the tests and serves the page.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// fill creates many ManagedResources, and one with many objects.
func (w *world) fill(t *testing.T, namespace string) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	large := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "large"}}
	large.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: large.Name}}
	for i := range manyResources {
		group.Go(func() error {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("set-%d", i)}}
			mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: mr.Name}}
			if err := w.client.Create(t.Context(), mr); err != nil {
				return err
			}
			status := resourcesv1alpha1.ConditionTrue
			if i%100 == 0 {
				status = resourcesv1alpha1.ConditionFalse
			}
			fillStatus(mr, status)
			for n := range 10 {
				mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{
					APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: fmt.Sprintf("set-%d-%d", i, n), Digest: "12345678901.12345678901",
				})
			}
			return w.client.Status().Update(t.Context(), mr)
		})
	}
	for i := range manyObjects {
		name := fmt.Sprintf("object-%d", i)
		large.Status.Resources = append(large.Status.Resources, resourcesv1alpha1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name, Digest: "1.1"})
		group.Go(func() error {
			return w.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"}}})
		})
	}
	kit.Must(t, group.Wait())
	resources := large.Status.Resources
	kit.Must(t, w.client.Create(t.Context(), large))
	fillStatus(large, resourcesv1alpha1.ConditionTrue)
	large.Status.Resources = resources
	kit.WriteStatus(t, w.client, large)
}

func fillStatus(mr *resourcesv1alpha1.ManagedResource, applied resourcesv1alpha1.ConditionStatus) {
	now := metav1.NewTime(time.Now())
	for i, status := range []resourcesv1alpha1.ConditionStatus{applied, "True", "False"} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: resourcesv1alpha1.ConditionTypes()[i], Status: status, Reason: "Reason", Message: strings.Repeat("All resources are as they should be. ", 2),
			LastTransitionTime: now, LastUpdateTime: now,
		})
	}
	mr.Status.ObservedGeneration = mr.Generation
}
