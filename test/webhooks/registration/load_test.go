package registration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

var (
	loadPods    = flag.Int("webhooks.pods", 100, "number of Pods that TestLoad creates in each round")
	loadWorkers = flag.Int("webhooks.parallel", 50, "number of Pods that TestLoad creates at a time")
	loadRounds  = flag.Int("webhooks.rounds", 1, "number of rounds of TestLoad")
)

// podWebhooks is the number of webhooks for Pods.
const podWebhooks = 7

// TestLoad creates Pods in three ways by turns: without webhooks, with as many idle webhooks as there are webhooks for Pods, and with the
// webhooks for Pods. It prints the latency of the requests. An idle webhook answers at once with the same patch of a label, so its latency
// is the API server's own work. All requests have to succeed.
func TestLoad(t *testing.T) {
	f := newFixtureOfAll(t)
	f.registerAll()
	idle, called := f.registerIdle(), f.namespaceOfAll()
	kit.EventuallyTrue(t, "the API server calls the webhooks", func() bool {
		probe := pod(called, "probe")
		return f.client.Create(t.Context(), probe, client.DryRunAll) == nil && probe.Spec.SchedulerName == "of-the-test"
	})
	namespaces := map[string]string{"none": f.namespaceOutside("none"), "idle": f.namespaceOutside("idle"), "all": called}
	took := map[string][]time.Duration{}
	f.createPods(namespaces["none"], 20) // warm-up, not measured
	for range *loadRounds {
		for _, kind := range []string{"none", "idle", "all"} {
			took[kind] = append(took[kind], f.createPods(namespaces[kind], *loadPods)...)
		}
	}
	t.Logf("%d Pods, %d at a time, %d rounds; %d calls of idle webhooks; resident memory of the resource-manager: %s",
		*loadPods, *loadWorkers, *loadRounds, idle.Load(), residentMemory(t, f.process))
	logLatencies(t, f.process)
	for _, percent := range []int{50, 99} {
		none, idle, all := quantileOf(took["none"], percent), quantileOf(took["idle"], percent), quantileOf(took["all"], percent)
		t.Logf("p%d of a request: %.1f ms without webhooks, %.1f ms with %d idle ones, %.1f ms with ours: ratios %.2f and %.2f, %.2f ms more for each",
			percent, millis(none), millis(idle), podWebhooks, millis(all), float64(all)/float64(none), float64(all)/float64(idle), millis(all-idle)/podWebhooks)
	}
}

// logLatencies prints the average latency of each handler, without the API server's share.
func logLatencies(t *testing.T, process *kit.Process) {
	t.Helper()
	_, metrics := process.Get(process.Metrics, "/metrics")
	sums := map[string]float64{}
	for line := range strings.Lines(metrics) {
		var path string
		var value float64
		name, rest, _ := strings.Cut(line, "{webhook=")
		if _, err := fmt.Sscanf(strings.ReplaceAll(rest, "}", " "), "%q %g", &path, &value); err != nil {
			continue
		}
		switch name {
		case "controller_runtime_webhook_latency_seconds_sum":
			sums[path] = value
		case "controller_runtime_webhook_latency_seconds_count":
			if value > 0 {
				t.Logf("%-55s %.2f ms in the resource-manager, on average of %.0f", path, 1000*sums[path]/value, value)
			}
		}
	}
}

// registerIdle registers idle webhooks with the API server, as many as there are webhooks for Pods. It returns the counter of their calls.
func (f *fixture) registerIdle() *atomic.Int64 {
	f.Helper()
	calls := &atomic.Int64{}
	server := kit.ServeWebhooks(f, map[string]http.Handler{"/idle": http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		calls.Add(1)
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(writer, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`,
			review.Request.UID, base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/metadata/labels/idle","value":"1"}]`)))
	})})
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "idle"}}
	for i := range podWebhooks {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: fmt.Sprintf("idle-%d.example.org", i), ClientConfig: server.ClientConfig("/idle"), AdmissionReviewVersions: []string{"v1"},
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.org/idle": "true"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		})
	}
	kit.Must(f, f.client.Create(f.Context(), configuration))
	f.Cleanup(func() { kit.Must(f, f.client.Delete(context.WithoutCancel(f.Context()), configuration)) })
	return calls
}

// namespaceOutside creates a namespace that our webhooks are not called for. Idle webhooks are called for it if kind is "idle".
func (f *fixture) namespaceOutside(kind string) string {
	f.Helper()
	namespace := f.namespaceOfAll()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null,"example.org/idle":"%t"}}}`, labelTest, kind == "idle")
	kit.Must(f, f.client.Patch(f.Context(), namespaceOf(namespace), client.RawPatch("application/merge-patch+json", []byte(patch))))
	kit.EventuallyTrue(f, "the API server no longer calls our webhooks", func() bool {
		probe := pod(namespace, "probe")
		return f.client.Create(f.Context(), probe, client.DryRunAll) == nil && probe.Spec.SchedulerName != "of-the-test"
	})
	return namespace
}

// createPods creates Pods, several at a time, and returns the latency of each request.
func (f *fixture) createPods(namespace string, count int) []time.Duration {
	f.Helper()
	durations, numbers := make([]time.Duration, count), make(chan int)
	var workers sync.WaitGroup
	for range *loadWorkers {
		workers.Go(func() {
			for i := range numbers {
				started := time.Now()
				if err := f.client.Create(f.Context(), pod(namespace, fmt.Sprintf("load-%d", i)), client.DryRunAll); err != nil {
					f.Errorf("creating a Pod failed: %v", err)
				}
				durations[i] = time.Since(started)
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
	return durations
}

func quantileOf(durations []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func millis(duration time.Duration) float64 { return float64(duration.Microseconds()) / 1000 }

// residentMemory returns the resident memory of a process as Linux reports it.
func residentMemory(t *testing.T, process *kit.Process) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Command.Process.Pid))
	if err != nil {
		return "unknown on this system"
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			return strings.TrimSpace(value)
		}
	}
	return "not known"
}
