package integration

import (
	"debug/elf"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// process is a running resource-manager.
type process struct{ *kit.Process }

func (f *fixture) command(config string) (*exec.Cmd, *kit.Output) {
	f.Helper()
	return kit.Command(f, config)
}

// start starts a resource-manager that is responsible for the fixture's namespace only.
func (f *fixture) start(extra string) *process {
	f.Helper()
	return f.startIn([]string{f.namespace}, extra)
}

// startIn starts a resource-manager that is responsible for the given namespaces.
func (f *fixture) startIn(namespaces []string, extra string, tune ...func(*exec.Cmd)) *process {
	f.Helper()
	return f.startWith(func(kubeconfig, healthPort, metricsPort string) string {
		return fmt.Sprintf(`apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: %s, namespaces: [%s], qps: -1}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %s}
  metrics: {bindAddress: 127.0.0.1, port: %s}
%s`, kubeconfig, strings.Join(namespaces, ", "), healthPort, metricsPort, extra)
	}, tune...)
}

// startWith starts a resource-manager with the caller's configuration and waits until it is ready.
func (f *fixture) startWith(config func(kubeconfig, healthPort, metricsPort string) string, tune ...func(*exec.Cmd)) *process {
	f.Helper()
	return &process{kit.StartManagerWith(f, shared.Get(f).Kubeconfig(), config("$KUBECONFIG", "$HEALTH_PORT", "$METRICS_PORT"), tune...)}
}

// status returns the HTTP status of a request, or 0 if no response arrived.
func (p *process) status(address, path string) int {
	p.Helper()
	status, _ := p.Get(address, path)
	return status
}

func (f *fixture) eventuallyApplied(name string, status resourcesv1alpha1.ConditionStatus, reason string) {
	f.Helper()
	f.eventually(fmt.Sprintf("ResourcesApplied of %s is %s %s", name, status, reason), func() bool {
		mr := &resourcesv1alpha1.ManagedResource{}
		must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, mr))
		condition := applied(mr)
		return condition.Status == status && condition.Reason == reason
	})
}

const noElection = "leaderElection: {leaderElect: false}\n"

func TestBinaryReactsToEvents(t *testing.T) {
	f := newFixture(t)
	p := f.start(noElection)
	if p.status(p.Health, "/healthz") != http.StatusOK || p.status(p.Metrics, "/metrics") != http.StatusOK {
		t.Error("/healthz or /metrics does not answer")
	}
	mr := f.managedResource("set", "later")
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonCannotReadSecret)
	f.secret("later", "objects.yaml", f.configMap("one", "1"))
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	live := f.wantConfigMap("one", "1")
	if manager := live.ManagedFields[0].Manager; manager != resourcesv1alpha1.FieldManager {
		t.Errorf("the field manager is %q", manager)
	}
	f.secret("later", "objects.yaml", f.configMap("one", "2"))
	f.eventually("the new value is applied", func() bool { return f.liveConfigMap("one").Data["key"] == "2" })

	elsewhere := newFixture(t)
	elsewhere.manage("set", elsewhere.configMap("one", "1"))
	must(t, f.client.Delete(f.ctx, mr))
	f.eventually("the objects are deleted", func() bool { return f.liveConfigMap("one") == nil })
	elsewhere.wantNoConfigMap("one")
	p.Stop()
}

func TestBinaryElectsALeader(t *testing.T) {
	f := newFixture(t)
	election := fmt.Sprintf("leaderElection: {leaderElect: true, resourceNamespace: %s, leaseDuration: 15s}\n", f.namespace)
	first := f.start(election)
	holder := func() string {
		lease := &coordinationv1.Lease{}
		key := types.NamespacedName{Namespace: f.namespace, Name: "gardener-resource-manager"}
		if f.client.Get(f.ctx, key, lease) != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	f.eventually("a leader is elected", func() bool { return holder() != "" })
	leader := holder()
	second := f.start(election)
	f.manage("set", f.configMap("one", "1"))
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	if holder() != leader {
		t.Error("the second one took the lease of the first")
	}
	first.Stop()
	f.eventually("the second one is the leader", func() bool { h := holder(); return h != "" && h != leader })
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	f.eventually("the second one reconciles", func() bool { return f.liveConfigMap("one").Data["key"] == "2" })
	second.Stop()
}

func TestBinaryRefusesAWrongConfiguration(t *testing.T) {
	f := newFixture(t)
	command, log := f.command(`apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
logLevel: loud
controllers: {managedResource: {syncPeriod: 1s, colour: green}}
leaderElection: {leaderElect: false}
`)
	err := command.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the exit is %v, want exit code 1", err)
	}
	wantContains(t, log.String(), "logLevel", "controllers.managedResource.syncPeriod", "controllers.managedResource.colour")
}

func TestBinaryPrintsItsVersion(t *testing.T) {
	path, err := kit.Binary()
	must(t, err)
	output, err := exec.Command(path, "--version").CombinedOutput()
	must(t, err)
	if got := strings.TrimSpace(string(output)); got != "v0.0.0-test" {
		t.Errorf("the output is %q", got)
	}
}

// TestBinaryHasNoUnusedMethods checks that the resource-manager does not call methods by names known only at run
// time, as templates do. The linker would have to keep all methods of all types, which is a quarter of the program,
// in memory as well.
func TestBinaryHasNoUnusedMethods(t *testing.T) {
	path, err := kit.Binary()
	must(t, err)
	program, err := elf.Open(path)
	if err != nil {
		t.Skip("the test reads symbols of a Linux program, and this is not one:  ", err)
	}
	defer program.Close()
	symbols, err := program.Symbols()
	must(t, err)
	found := map[string]bool{}
	for _, symbol := range symbols {
		found[symbol.Name] = true
	}
	if !found["main.main"] {
		t.Error("the symbol table is not that of the resource-manager")
	}
	if found["text/template.(*state).evalField"] {
		t.Error("templates are executed: find the path to them with go build -ldflags=-dumpdep ./cmd/resource-manager")
	}
}
