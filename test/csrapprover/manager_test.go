package csrapprover

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

var (
	manyRequests    = flag.Int("csr.count", 60, "number of CertificateSigningRequests of TestManyRequests, a multiple of 3")
	concurrentSyncs = flag.Int("csr.concurrentSyncs", 1, "concurrentSyncs of TestManyRequests")
)

func (f *fixture) machineNamed(name string) *unstructured.Unstructured {
	f.Helper()
	machine := &unstructured.Unstructured{}
	machine.SetAPIVersion("machine.sapcloud.io/v1alpha1")
	machine.SetKind("Machine")
	kit.Must(f, f.client.Get(f.ctx, client.ObjectKey{Namespace: machineNamespace, Name: name}, machine))
	return machine
}

// TestMachinesAppearAtRunTime checks that without the kind Machine, the manager runs but decides nothing that needs Machines. Once the
// kind is defined, it decides everything. Tests that are not parallel run first, one after the other, so that the kind exists for all
// other tests.
func TestMachinesAppearAtRunTime(t *testing.T) {
	f := newFixture(t)
	kit.Must(t, f.client.Delete(f.ctx, machineDefinition()))
	kit.EventuallyTrue(t, "the kind Machine no longer exists", func() bool {
		return apierrors.IsNotFound(f.client.Get(f.ctx, client.ObjectKeyFromObject(machineDefinition()), machineDefinition()))
	})
	defined := sync.OnceFunc(f.defineMachines)
	t.Cleanup(defined) // for the other tests, even if this one fails
	requests, _ := f.runManager(1)
	node := f.node("node")
	serving, agent := f.request(f.serving(node)), f.request(f.bootstrap(f.name("machine")))
	gardenadm := f.bootstrap("")
	gardenadm.template.Subject.CommonName, gardenadm.template.Subject.Organization = "gardener.cloud:gardenadm:shoot:a:b", []string{"gardener.cloud:system:shoots"}
	connection := f.request(gardenadm)
	tried := func(suffix string) bool {
		return slices.ContainsFunc(requests.Single(), func(sent kit.Request) bool { return strings.HasSuffix(sent.Path, suffix) })
	}
	kit.EventuallyTrue(t, "the request that needs no Machine is approved, and Machines are requested", func() bool {
		return f.decision(connection) == approvedClient && tried("/machines") && tried("/machines/"+f.name("machine"))
	})
	if got := f.decision(serving) + f.decision(agent); got != "" {
		t.Errorf("decided without Machines: %s", got)
	}
	defined()
	// Waiting requests might be reconciled before any Machine exists, and are denied then.
	kit.EventuallyTrue(t, "the waiting requests are decided", func() bool { return f.decision(serving) != "" && f.decision(agent) != "" })
	f.machine(f.name("machine"), node)
	f.machine(f.name("idle"), "")
	again, idle := f.request(f.serving(node)), f.request(f.bootstrap(f.name("idle")))
	kit.Eventually(t, "with Machines, requests are approved", func() string {
		if got := f.decision(again) + f.decision(idle); got != approvedServing+approvedClient {
			return "the decisions are " + got
		}
		return ""
	})
}

// TestManyRequests prints the number of decisions per second and the cost of each, for example with
// go test ./test/csrapprover -run TestManyRequests -v -csr.count=3000
func TestManyRequests(t *testing.T) {
	f := newFixture(t)
	count := *manyRequests / 3
	var names []string
	var mu sync.Mutex
	each(8, count, func(i int) {
		node, machine := f.joined(fmt.Sprint("many-", i))
		idle := f.name(fmt.Sprint("idle-", i))
		f.machine(idle, "")
		created := []string{f.request(f.serving(node)), f.request(f.renewal(machine)), f.request(f.bootstrap(idle))}
		mu.Lock()
		defer mu.Unlock()
		names = append(names, created...)
	})
	started := time.Now()
	requests, registry := f.runManager(*concurrentSyncs)
	kit.EventuallyTrue(t, "all requests are approved", func() bool {
		return int(metricOf(t, registry, "certificate_requests_decided_total", "approved")) >= len(names)
	})
	took := time.Since(started)
	for _, name := range names { // undecided requests of other tests counted too
		kit.Eventually(t, name+" is approved", func() string {
			if got := f.decision(name); got != approvedServing && got != approvedClient {
				return "the decision is " + got
			}
			return ""
		})
	}
	searches, lists, writes, reads := 0, 0, 0, 0
	for _, sent := range requests.Single() {
		switch {
		case strings.HasSuffix(sent.Path, "/machines"):
			searches++
		case strings.HasSuffix(sent.Path, "/certificatesigningrequests"):
			lists++
		case sent.Method == http.MethodPut:
			writes++
		case strings.Contains(sent.Path, "/nodes/") || strings.Contains(sent.Path, "/machines/"):
			reads++
		}
	}
	t.Logf("%d requests decided in %s with concurrentSyncs %d: %.0f per second; for each %.2f reads and %.2f writes; %d searches for Machines, %d lists of requests",
		len(names), took.Round(time.Millisecond), *concurrentSyncs, float64(len(names))/took.Seconds(),
		float64(reads)/float64(len(names)), float64(writes)/float64(len(names)), searches, lists)
	// A kubelet takes a read of a Node and of a Machine, each of the two node agents a read of a Machine: 4 reads for 3 requests. Until
	// the view of Machines is filled, the API server searches instead. Undecided requests of other tests are decided too.
	others := 20
	if writes > len(names)+others || reads+searches > 4*count+others || lists > 1 || requests.Watched("/nodes") {
		t.Errorf("%d writes, %d reads, %d searches, %d lists", writes, reads, searches, lists)
	}
}

// each calls a function for the numbers below count, several at a time.
func each(workers, count int, do func(int)) {
	numbers := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for number := range numbers {
				do(number)
			}
		})
	}
	for number := range count {
		numbers <- number
	}
	close(numbers)
	group.Wait()
}

// TestBinaryApprovesIfEnabled checks that the configuration enables the approver, with and without restricted namespaces.
func TestBinaryApprovesIfEnabled(t *testing.T) {
	f := newFixture(t)
	kit.DefineManagedResources(t, shared.Get(t).Config())
	start := func(settings string) *kit.Process {
		return kit.StartManager(t, shared.Get(t).Kubeconfig(), []string{"default"}, "controllers: {csrApprover: "+settings+"}\n")
	}
	off := start("{}")
	kit.EventuallyTrue(t, "the controllers of a resource-manager without the approver run", func() bool { return strings.Count(off.Written.String(), "Starting workers") == 2 })
	if _, body := off.Get(off.Metrics, "/metrics"); strings.Contains(body, "resource_manager_certificate") || strings.Contains(off.Written.String(), "csr-approver") {
		t.Error("the approver runs although it is not enabled")
	}
	off.Stop()

	p := start("{enabled: true, concurrentSyncs: 3, machineNamespace: " + machineNamespace + "}")
	node, machine := f.joined("node")
	alone := f.node("alone")
	good, agent, bad := f.request(f.serving(node)), f.request(f.renewal(machine)), f.request(f.serving(alone))
	kit.Eventually(t, "all requests are decided", func() string {
		got := []string{f.decision(good), f.decision(agent), f.decision(bad)}
		if got[0] == approvedServing && got[1] == approvedClient && strings.HasPrefix(got[2], deniedServing) {
			return ""
		}
		return fmt.Sprint(got)
	})
	kit.Eventually(t, "the Node has an Event in the namespace default", func() string {
		list := &eventsv1.EventList{}
		kit.Must(t, f.client.List(f.ctx, list, client.InNamespace("default")))
		for _, event := range list.Items {
			if event.Reason == "ServingCertificateDenied" && event.Regarding.Kind == "Node" && event.Regarding.Name == alone &&
				string(event.Regarding.UID) == alone && event.Related != nil && event.Related.Name == bad && event.Type == "Warning" && event.ReportingController == "csr-approver" {
				return ""
			}
		}
		return fmt.Sprintf("%d other Events", len(list.Items))
	})
	kit.Eventually(t, "the metrics count the decisions", func() string {
		_, body := p.Get(p.Metrics, "/metrics")
		for _, want := range []string{
			`resource_manager_certificate_requests_decided_total{decision="approved",reason="passed",request="kubelet-serving"} 1`,
			`resource_manager_certificate_requests_decided_total{decision="approved",reason="passed",request="node-agent"} 1`,
			`resource_manager_certificate_requests_decided_total{decision="denied",reason="machine",request="kubelet-serving"} 1`,
			`resource_manager_certificate_request_decision_age_seconds_count{request="gardenadm"} 0`,
		} {
			if !strings.Contains(body, want) {
				return "missing: " + want
			}
		}
		return ""
	})
	log := p.Written.String()
	if !strings.Contains(log, `"worker count":3`) || !strings.Contains(log, "Decided a CertificateSigningRequest") {
		t.Error("the log does not contain the decisions")
	}
}
