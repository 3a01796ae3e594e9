package csrapprover

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/trellis-k8s/trellis/pkg/csrapprover"
	"github.com/trellis-k8s/trellis/test/kit"
)

// approver is a reconciler that the test calls. It has only the rights that it needs.
type approver struct {
	*fixture
	*csrapprover.Reconciler
	requests *kit.Requests
	recorder *events.FakeRecorder
	registry *prometheus.Registry

	mu sync.Mutex
	// before is called before each request and may answer in place of the API server.
	before func(*http.Request) (*http.Response, error)
}

// approverConfig returns the approver's connection to the cluster.
func (f *fixture) approverConfig(requests *kit.Requests) *rest.Config {
	config := shared.Get(f).Config()
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: approverUser, Groups: []string{"system:authenticated"}}
	config.Wrap(requests.Wrap)
	return config
}

// newApprover returns an approver. withMachines is whether it checks requests against Machines.
func (f *fixture) newApprover(withMachines bool) *approver {
	f.Helper()
	a := &approver{fixture: f, requests: &kit.Requests{}, recorder: events.NewFakeRecorder(100), registry: prometheus.NewRegistry()}
	config := f.approverConfig(a.requests)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
			a.mu.Lock()
			before := a.before
			a.mu.Unlock()
			if before != nil {
				if response, err := before(request); response != nil || err != nil {
					return response, err
				}
			}
			return next.RoundTrip(request)
		})
	})
	c, err := client.New(config, client.Options{Scheme: f.client.Scheme(), Mapper: f.client.RESTMapper()})
	kit.Must(f, err)
	a.Reconciler = &csrapprover.Reconciler{
		Target: c, Direct: c, Recorder: a.recorder, Metrics: csrapprover.NewMetrics(a.registry), Clock: clock.RealClock{}, ConcurrentSyncs: 1,
	}
	if withMachines {
		a.Machines = f.newMachines(config)
	}
	return a
}

func (f *fixture) newMachines(config *rest.Config) *csrapprover.Machines {
	f.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	kit.Must(f, err)
	machines, err := csrapprover.NewMachines(config, httpClient, machineNamespace, logr.Discard())
	kit.Must(f, err)
	return machines
}

// intercept sets the function that is called before each request.
func (a *approver) intercept(before func(*http.Request) (*http.Response, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = before
}

// failing makes the requests fail whose method and path contain a text.
func (a *approver) failing(text string) {
	a.intercept(func(request *http.Request) (*http.Response, error) {
		if strings.Contains(request.Method+" "+request.URL.Path, text) {
			return nil, errors.New("connection broken by the test")
		}
		return nil, nil
	})
}

// try reconciles a request, and returns the result and the error.
func (a *approver) try(name string) (reconcile.Result, error) {
	return a.Reconcile(a.ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
}

// decide reconciles a request, and returns the decision.
func (a *approver) decide(name string) string {
	a.Helper()
	result, err := a.try(name)
	kit.Must(a, err)
	if !result.IsZero() {
		a.Errorf("the result is %+v", result)
	}
	return a.decision(name)
}

// wantDecision checks the beginning of the decision and, for a denial, the text of its reason.
func (a *approver) wantDecision(d demand, begin, why string) {
	a.Helper()
	got := a.decide(a.request(d))
	if !strings.HasPrefix(got, begin) || !strings.Contains(got, why) {
		a.Errorf("got  %s\nwant %s … %s", got, begin, why)
	}
}

const (
	approvedServing = "Approved RequestApproved: Approving kubelet server certificate CSR (all checks passed)"
	deniedServing   = "Denied RequestDenied: Denying kubelet server certificate CSR ("
	approvedClient  = "Approved RequestApproved: Approving gardener-node-agent certificate CSR (all checks passed)"
	deniedClient    = "Denied RequestDenied: Denying gardener-node-agent certificate CSR ("
)

// metric returns the sum of a counter over all series, or over the series with the given label values.
func (a *approver) metric(name string, labels ...string) (sum float64) {
	a.Helper()
	return metricOf(a.T, a.registry, name, labels...)
}

func metricOf(t *testing.T, registry *prometheus.Registry, name string, labels ...string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	kit.Must(t, err)
	for _, family := range families {
		if family.GetName() != "resource_manager_"+name {
			continue
		}
		for _, metric := range family.GetMetric() {
			matching := 0
			for _, pair := range metric.GetLabel() {
				for _, label := range labels {
					if pair.GetValue() == label {
						matching++
					}
				}
			}
			if matching == len(labels) {
				sum += metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// runManager runs an approver in a manager, wired in the same way as the program, until the test ends.
func (f *fixture) runManager(concurrentSyncs int) (*kit.Requests, *prometheus.Registry) {
	f.Helper()
	requests, registry := &kit.Requests{}, prometheus.NewRegistry()
	config := f.approverConfig(requests)
	mgr, err := manager.New(config, kit.ManagerOptions(f.client.Scheme()))
	kit.Must(f, err)
	target, err := cluster.New(config, func(options *cluster.Options) {
		options.Scheme = f.client.Scheme()
		options.Cache.ByObject = map[client.Object]cache.ByObject{&certificatesv1.CertificateSigningRequest{}: {Transform: csrapprover.Reduce}}
	})
	kit.Must(f, err)
	kit.Must(f, mgr.Add(target))
	approver := &csrapprover.Reconciler{
		Target: target.GetClient(), Direct: target.GetAPIReader(), Machines: f.newMachines(config), Recorder: target.GetEventRecorder("csr-approver"),
		Metrics: csrapprover.NewMetrics(registry), Clock: clock.RealClock{}, ConcurrentSyncs: concurrentSyncs,
	}
	kit.Must(f, approver.AddToManager(mgr, target.GetCache()))
	kit.Run(f, mgr)
	return requests, registry
}
