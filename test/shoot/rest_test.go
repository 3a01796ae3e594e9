package shoot

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/measure"
)

var restFor = flag.Duration("shoot.rest", 10*time.Second, "how long TestRest observes a Shoot at rest")

const (
	// steadyFor is how long the programs must not send requests until they count as being at rest.
	steadyFor = 5 * time.Second
	// restReport is how often the table is printed while a Shoot rests.
	restReport = 10 * time.Minute
	// passes is the number of reconciles over which CPU time is measured. passEvery is the delay between them.
	passes    = 100
	passEvery = 100 * time.Millisecond
)

// Users of the programs in the garden and the seed.
const (
	gardenletUser      = "gardenlet"
	seedManagerAccount = resourcemanager.Name
)

// programs are the names of the programs by user, in the garden, the seed and the cluster of the Shoot.
var programs = map[string]string{
	gardenletUser: gardenletUser,
	"system:serviceaccount:" + technical + ":gardener-resource-manager": "resource-manager of the shoot",
	"system:serviceaccount:garden:" + seedManagerAccount:                "resource-manager of the seed",
	"gardener.cloud:system:gardenlet":                                   gardenletUser,
	"health-check":                                                      gardenletUser,
	"system:serviceaccount:kube-system:gardener-resource-manager":       "resource-manager of the shoot",
}

// sent is a kind of request.
type sent struct{ to, by, what string }

// upkeep names the requests that a program sends even if nothing changes. It is empty for other requests.
func upkeep(request measure.Request) string {
	path, isProbe := request.Resource, request.Verb == measure.VerbDiscover
	switch {
	case request.Verb == "watch":
		return "watches"
	case request.Resource == "leases":
		return "leases"
	case isProbe && slices.Contains([]string{"/healthz", "/readyz", "/livez"}, path):
		return path
	}
	return ""
}

// counter counts requests of the programs by phase of the life cycle of a Shoot.
type counter struct {
	*world
	logs   map[string]*measure.Audit
	phases []string
	counts map[sent]map[string]int
}

func (w *world) counter(files map[string]string) *counter {
	w.Helper()
	c := &counter{world: w, logs: map[string]*measure.Audit{}, counts: map[sent]map[string]int{}}
	for name, file := range files {
		kit.Must(w, os.WriteFile(file, nil, 0o600)) // the server that writes it is not running yet
		c.follow(name, file)
	}
	return c
}

// follow starts to count the requests that are logged from now on.
func (c *counter) follow(name, file string) {
	c.Helper()
	log, err := measure.OpenAudit(file)
	kit.Must(c, err)
	c.Cleanup(func() { _ = log.Close() })
	kit.Must(c, log.Skip())
	c.logs[name] = log
}

// begin starts a phase.
func (c *counter) begin(phase string) {
	c.Helper()
	c.read()
	c.phases = append(c.phases, phase)
}

// read counts the requests logged since the last call, and returns the number of requests other than upkeep in this phase.
func (c *counter) read() (total int) {
	c.Helper()
	for to, log := range c.logs {
		requests, err := log.Read()
		kit.Must(c, err)
		for _, request := range requests {
			by, ours := programs[request.User]
			if !ours || len(c.phases) == 0 {
				continue
			}
			what := cmp.Or(upkeep(request), request.Verb+" "+request.Resource)
			if upkeep(request) == "" && request.Writes() {
				what += " (write)"
			}
			key := sent{to, by, what}
			if c.counts[key] == nil {
				c.counts[key] = map[string]int{}
			}
			c.counts[key][c.phases[len(c.phases)-1]]++
		}
	}
	for key, counts := range c.counts {
		if !key.isUpkeep() && len(c.phases) > 0 {
			total += counts[c.phases[len(c.phases)-1]]
		}
	}
	return total
}

func (s sent) isUpkeep() bool { return !strings.Contains(s.what, " ") }

// settle waits until the programs have sent nothing but upkeep for some time.
func (c *counter) settle() {
	c.Helper()
	steady := kit.Steady(steadyFor)
	kit.EventuallyWithin(c, 4*kit.WaitTimeout, "the programs are at rest", func() string {
		if total := c.read(); !steady(total) {
			return fmt.Sprintf("%d requests in this phase", total)
		}
		return ""
	})
}

// table lists the requests by phase.
func (c *counter) table() string {
	keys := slices.SortedFunc(maps.Keys(c.counts), func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.to, b.to), cmp.Compare(a.what, b.what))
	})
	lines := [][]string{append([]string{"by", "to", "requests"}, c.phases...)}
	for _, key := range keys {
		line := []string{key.by, key.to, key.what}
		for _, phase := range c.phases {
			line = append(line, strconv.Itoa(c.counts[key][phase]))
		}
		lines = append(lines, line)
	}
	sum := []string{gardenletUser, "all", "**writes**"}
	for _, phase := range c.phases {
		writes := 0
		for key, counts := range c.counts {
			if key.by == gardenletUser && strings.HasSuffix(key.what, "(write)") {
				writes += counts[phase]
			}
		}
		sum = append(sum, strconv.Itoa(writes))
	}
	return measure.Table(append(lines, sum), true)
}

// TestRest counts the requests of gardenlet and the resource-managers while a Shoot is created, gets another flag, is
// reconciled without changes after a restart of gardenlet, and rests. At rest, the programs only restart watches, renew
// leases, and probe the API server. It also measures the CPU time of a reconcile.
func TestRest(t *testing.T) {
	w := newWorld(t)
	w.user = gardenletUser
	shootLog := filepath.Join(t.TempDir(), "shoot.log")
	w.serverArgs = map[string]string{
		"audit-log-path": shootLog, "audit-log-maxsize": "0", "audit-policy-file": filepath.Join(w.seeds.Dir(), "audit-policy.yaml"),
	}
	counted := w.counter(map[string]string{"cluster": shootLog})
	counted.follow("garden", gardens.Options.ControlPlane.AuditLog)
	counted.follow("seed", seeds.Options.AuditLog)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()

	counted.begin("creation")
	_, _, stop := w.gardenlet()
	w.declare()
	w.startServer()
	w.startManager()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	w.startControllers()
	w.checkConditions(corev1beta1.ConditionTrue, "HealthzRequestSucceeded")
	counted.settle()

	counted.begin("one flag")
	shoot := w.get()
	kit.Change(t, w.garden, shoot, func() { shoot.Spec.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight = ptr.To[int32](333) })
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
	counted.settle()

	counted.begin("restart")
	stop()
	toGarden, toSeed, stop := w.gardenlet()
	defer func() { stop() }()
	kit.EventuallyTrue(t, "the Shoot is watched", func() bool { return toSeed.Watched("/managedresources") && toGarden.Watched("/shoots") })
	counted.settle()

	counted.begin("rest")
	w.rest(counted)
	t.Logf("requests, including %s at rest:\n%s", *restFor, counted.table())
	for key, counts := range counted.counts {
		if strings.HasSuffix(key.what, "(write)") && key.by == gardenletUser && counts["restart"] > 0 {
			t.Errorf("after a restart, gardenlet sent %s to the %s %d times", key.what, key.to, counts["restart"])
		}
	}
	with, count := w.touch()
	stop()
	stop = func() {}
	without, _ := w.touch()
	t.Logf("%d reconciles at rest took %s of CPU time each", count, ((with - without) / time.Duration(max(count, 1))).Round(10*time.Microsecond))
	if count < passes/2 {
		t.Errorf("found only %d reconciles", count)
	}
}

// rest waits for the duration of the flag, and immediately reports each unexpected request.
func (w *world) rest(counted *counter) {
	w.Helper()
	began, before, shown := time.Now(), 0, 1
	for time.Since(began) < *restFor {
		if total := counted.read(); total != before {
			before = total
			w.Errorf("%d requests after %s of rest:\n%s", total, time.Since(began).Round(time.Second), counted.table())
		}
		if *restFor > time.Hour/2 && time.Since(began) > time.Duration(shown)*restReport {
			shown++
			w.Logf("requests after %s at rest:\n%s", time.Since(began).Round(time.Second), counted.table())
		}
		select {
		case <-w.Context().Done():
			w.Fatal(context.Cause(w.Context()))
		case <-time.After(min(time.Second, *restFor-time.Since(began)+time.Millisecond)):
		}
	}
}

// touch triggers reconciles without changes: it sets an annotation that the flow does not read on a Secret with
// manifests. It returns the CPU time of this process and the number of reconciles.
func (w *world) touch() (used time.Duration, count int) {
	w.Helper()
	var list corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &list, client.InNamespace(constants.GardenNamespace), client.HasLabels{flow.LabelFlow}))
	if len(list.Items) == 0 {
		w.Fatal("the Shoot has no Secret with manifests")
	}
	countBefore := w.passes()
	before, err := measure.CPUOf(os.Getpid())
	kit.Must(w, err)
	for i := range passes {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/touched":"%d"}}}`, i)
		kit.Must(w, w.seed.Patch(w.Context(), &list.Items[0], client.RawPatch(types.MergePatchType, patch)))
		<-time.After(passEvery)
	}
	after, err := measure.CPUOf(os.Getpid())
	kit.Must(w, err)
	return after - before, w.passes() - countBefore
}

// passes returns the number of reconciles of the controller of Shoots.
func (w *world) passes() int {
	w.Helper()
	families, err := metrics.Registry.Gather()
	kit.Must(w, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "shoot" {
					total += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return int(total)
}
