package trouble

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var (
	soak    = flag.Duration("trouble.soak", 0, "how long TestSoak runs; 0 skips it")
	soakOut = flag.String("trouble.soak.out", "", "directory for the results of TestSoak, soak.txt and soak.json; empty writes none")
)

const (
	soakSets, soakSize = 300, 10
	// soakRows is the number of rows of the table: every 10 minutes of two hours.
	soakRows = 12
	// soakSamples is the number of samples of the process for one row.
	soakSamples = 20
	// soakLives is the number of processes. All except the last one are killed, in the first third of the time. Only
	// the last one is judged.
	soakLives = 4
	// soakShare is the share of failing requests.
	soakShare = 0.02
)

// soakRow holds the measurements of one interval.
type soakRow struct {
	// Minutes is the time from the start to the end of the interval.
	Minutes float64 `json:"minutes"`
	// Life is the number of the process.
	Life int `json:"life"`
	// RSS is the median of the resident memory. Heap is the size of Go's heap in use after a collection at the end of
	// the interval. Both are in MiB.
	RSS  float64 `json:"rssMiB"`
	Heap float64 `json:"heapMiB"`
	// Goroutines is the median of the number of goroutines.
	Goroutines float64 `json:"goroutines"`
	// Requests, Faults, Steps and Corrections are counts of this interval: requests of the resource-manager without
	// watches, failed requests among them, changes by users, and objects whose drift was corrected.
	Requests    int64 `json:"requests"`
	Faults      int64 `json:"faults"`
	Steps       int64 `json:"steps"`
	Corrections int64 `json:"corrections"`
}

// soakResult is the outcome of a soak.
type soakResult struct {
	Duration   string    `json:"duration"`
	Objects    int       `json:"objects"`
	Rows       []soakRow `json:"rows"`
	Objections []string  `json:"objections"`
	Leaks      []string  `json:"leaks"`
	// Settled is the number of seconds from the last fault until the declared state was established.
	Settled float64 `json:"settledSeconds"`
}

// TestSoak lets the program manage 3,000 objects of 300 ManagedResources. Users change them all the time, requests
// and watches fail at random, and the process is killed now and then. In the end the declared state must be
// established, no anchor may have been deleted, and memory and goroutines of the last process must not have grown.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("needs -trouble.soak, the duration: run `make soak`")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, cp.Stop()) })
	w := newWorldOn(t, cp)
	source, target := newProxy(t, cp.Config()), newProxy(t, cp.Config())
	d := &soaking{
		world: w, storm: w.newStorm(uint64(time.Now().UnixNano()), soakSets, soakSize), weather: newWeather(7, soakShare),
		source: source, target: target, started: time.Now(),
	}
	d.storm.timeout = 15 * time.Minute
	d.live()
	d.storm.begin()
	d.weather.over(source, target)
	source.cutWatches()
	target.cutWatches()
	d.started = time.Now()
	for row := range soakRows {
		d.result.Rows = append(d.result.Rows, d.part(row))
		t.Log(d.result.line(row))
	}
	d.weather.clear()
	cleared := time.Now()
	kit.EventuallyWithin(t, d.storm.timeout, "after the faults, the declared state is established", func() string {
		d.result.Objections = w.objections()
		return strings.Join(d.result.Objections[:min(10, len(d.result.Objections))], "; ")
	})
	d.result.Settled = time.Since(cleared).Seconds()
	d.result.Objections = append(d.result.Objections, d.storm.lostAnchors()...)
	d.result.Leaks = leaks(d.result.Rows)
	d.result.Duration, d.result.Objects = soak.String(), soakSets*soakSize
	t.Logf("changes by users: %v\n%s", d.storm.done, d.result.table())
	d.result.write(t, *soakOut)
	for _, text := range slices.Concat(d.result.Objections, d.result.Leaks) {
		t.Error(text)
	}
	d.process.Stop()
}

// soaking is a running soak.
type soaking struct {
	*world
	storm          *storm
	weather        *weather
	source, target *proxy
	started        time.Time
	process        *kit.Process
	lives          int
	result         soakResult
	// steps counts the changes by users. Corrected is the last seen value of the current process's metrics.
	steps     int64
	corrected float64
}

// live kills the previous process and starts one.
func (d *soaking) live() {
	d.Helper()
	if d.process != nil {
		kit.Must(d, d.process.Command.Process.Kill())
		_, _ = d.process.Command.Process.Wait()
	}
	d.lives++
	d.corrected = 0
	d.process = d.startBinary(d.kubeconfigOf(d.source.config()), d.kubeconfigOf(d.target.config()), noElection+"debugging: {enableProfiling: true}\n")
}

// part runs one interval.
func (d *soaking) part(row int) soakRow {
	d.Helper()
	passed, faults, steps, corrected := d.weather.passed.Load(), d.weather.faults.Load(), d.steps, 0.0
	var rss, goroutines []float64
	length := *soak / soakRows
	for sample := range soakSamples {
		if row < soakRows/3 && sample == soakSamples/2 && d.lives < soakLives {
			d.live()
		}
		end := d.started.Add(time.Duration(row)*length + time.Duration(sample+1)*length/soakSamples)
		for time.Now().Before(end) {
			d.storm.rage(1, 200*time.Millisecond)
			d.steps++
		}
		rss = append(rss, float64(memoryOf(d, d.process, "VmRSS"))/(1<<20))
		goroutines = append(goroutines, metric(d.process, "go_goroutines"))
		now := metric(d.process, "resource_manager_drift_corrected_total")
		corrected += now - d.corrected
		d.corrected = now
		d.source.Forget()
		d.target.Forget()
	}
	return soakRow{
		Minutes: time.Since(d.started).Minutes(), Life: d.lives, RSS: median(rss), Heap: d.heap(row), Goroutines: median(goroutines),
		Requests: d.weather.passed.Load() - passed, Faults: d.weather.faults.Load() - faults, Steps: d.steps - steps,
		Corrections: int64(corrected),
	}
}

// heap returns the size of the heap in use after a collection. It also writes a heap profile if there is a
// directory for results.
func (d *soaking) heap(row int) float64 {
	d.Helper()
	status, profile := d.process.Get(d.process.Metrics, "/debug/pprof/heap?gc=1")
	if status != http.StatusOK {
		d.Fatalf("profile of the heap: %d %s", status, profile)
	}
	inUse := metric(d.process, "go_memstats_heap_inuse_bytes") / (1 << 20)
	if *soakOut != "" {
		kit.Must(d, writeFile(filepath.Join(*soakOut, fmt.Sprintf("soak-heap-%d.pb.gz", row+1)), []byte(profile)))
	}
	return inUse
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// leaks judges the rows of the last process: the later half must not exceed the earlier one by more than the usual
// fluctuation.
func leaks(rows []soakRow) []string {
	last := rows[len(rows)-1].Life
	rows = slices.DeleteFunc(slices.Clone(rows), func(row soakRow) bool { return row.Life != last })
	rows = rows[1:] // the start of the process
	earlier, later := rows[:len(rows)/2], rows[len(rows)/2:]
	var found []string
	for _, figure := range []struct {
		name string
		of   func(soakRow) float64
		// share and more are the relative and absolute growth that is allowed.
		share, more float64
	}{
		{"resident memory (MiB)", func(row soakRow) float64 { return row.RSS }, 0.1, 2},
		{"heap (MiB)", func(row soakRow) float64 { return row.Heap }, 0.1, 2},
		{"goroutines", func(row soakRow) float64 { return row.Goroutines }, 0.1, 10},
	} {
		var before, after []float64
		for _, row := range earlier {
			before = append(before, figure.of(row))
		}
		for _, row := range later {
			after = append(after, figure.of(row))
		}
		if was, is := median(before), median(after); is > was*(1+figure.share)+figure.more {
			found = append(found, fmt.Sprintf("%s grew from %.1f to %.1f", figure.name, was, is))
		}
	}
	return found
}

const soakHead = "minutes  process  RSS MiB  heap MiB  goroutines  requests  faults  steps  corrections"

func (r *soakResult) line(i int) string {
	row := r.Rows[i]
	return fmt.Sprintf("%7.1f  %7d  %7.1f  %8.1f  %10.0f  %8d  %6d  %5d  %11d", row.Minutes, row.Life, row.RSS, row.Heap, row.Goroutines,
		row.Requests, row.Faults, row.Steps, row.Corrections)
}

// table returns the result as text.
func (r *soakResult) table() string {
	lines := []string{fmt.Sprintf("%s at %d objects", r.Duration, r.Objects), soakHead}
	for i := range r.Rows {
		lines = append(lines, r.line(i))
	}
	verdict := func(what string, found []string) string {
		if len(found) == 0 {
			return what + ": none"
		}
		return what + ":\n  " + strings.Join(found, "\n  ")
	}
	lines = append(lines, fmt.Sprintf("the declared state was established %.1f s after the last fault", r.Settled), verdict("violations", r.Objections), verdict("leaks", r.Leaks))
	return strings.Join(lines, "\n") + "\n"
}

// write writes the result to a directory, unless its name is empty.
func (r *soakResult) write(tb testing.TB, directory string) {
	tb.Helper()
	if directory == "" {
		return
	}
	kit.Must(tb, os.MkdirAll(directory, 0o750))
	encoded, err := json.MarshalIndent(r, "", "  ")
	kit.Must(tb, err)
	kit.Must(tb, writeFile(filepath.Join(directory, "soak.txt"), []byte(r.table())))
	kit.Must(tb, writeFile(filepath.Join(directory, "soak.json"), append(encoded, '\n')))
}

func TestLeaksAreFound(t *testing.T) {
	row := func(life int, rss, heap, goroutines float64) soakRow {
		return soakRow{Life: life, RSS: rss, Heap: heap, Goroutines: goroutines}
	}
	for name, test := range map[string]struct {
		rows []soakRow
		want int
	}{
		"flat":                   {[]soakRow{row(1, 90, 90, 900), row(2, 10, 10, 10), row(2, 60, 40, 200), row(2, 62, 39, 210), row(2, 59, 41, 190), row(2, 61, 40, 205)}, 0},
		"it takes time to start": {[]soakRow{row(2, 10, 10, 10), row(2, 60, 40, 200), row(2, 60, 40, 200)}, 0},
		"memory grows":           {[]soakRow{row(2, 60, 40, 200), row(2, 60, 40, 200), row(2, 64, 44, 200), row(2, 70, 48, 200), row(2, 76, 52, 200)}, 2},
		"goroutines grow":        {[]soakRow{row(2, 60, 40, 200), row(2, 60, 40, 200), row(2, 60, 40, 240), row(2, 60, 40, 280), row(2, 60, 40, 320)}, 1},
	} {
		if got := leaks(test.rows); len(got) != test.want {
			t.Errorf("%s: %v, want %d leaks", name, got, test.want)
		}
	}
}
