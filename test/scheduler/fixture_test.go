// Package scheduler tests the scheduler's program with a garden that has a real API server.
package scheduler

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/cmd/scheduler/app"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
)

const user = "system:serviceaccount:garden:gardener-scheduler"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// binary builds the program once and returns its path.
var binary = sync.OnceValues(controlplane.BuildProgram[app.Program])

// fixture is a garden. The scheduler has only the permissions that its chart grants.
type fixture struct {
	*testing.T
	plane         *garden.Garden
	client        client.Client
	audit, config string
	process       *controlplane.Process
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	f := &fixture{T: t, audit: filepath.Join(t.TempDir(), "audit.log")}
	server, err := garden.Binary()
	kit.Must(t, err)
	f.plane, err = garden.Start(t.Context(), garden.Options{APIServer: server, ShootRules: true, ControlPlane: controlplane.Options{AuditLog: f.audit}})
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, f.plane.KillAPIServer()) // a graceful stop would wait for watches to end
		kit.Must(t, f.plane.Stop())
	})
	t.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(f.plane.Dir(), "scheduler.log")); err == nil && t.Failed() {
			t.Logf("log of the scheduler:\n%s", text)
		}
	})
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, served.AddToScheme(scheme))
	f.client, err = client.New(f.plane.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	for _, name := range []string{"garden", project} {
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	charts.Apply(t, f.client, "scheduler", nil, charts.IsRight)
	f.configure()
	return f
}

// configure writes the kubeconfig and the configuration file.
func (f *fixture) configure() {
	f.Helper()
	file := kit.AccountKubeconfig(f, f.plane.Config(), f.client, "garden", "gardener-scheduler")
	directory := f.TempDir()
	f.config = filepath.Join(directory, "config.yaml")
	kit.Must(f, os.WriteFile(f.config, fmt.Appendf(nil, `apiVersion: scheduler.config.gardener.cloud/v1alpha1
kind: SchedulerConfiguration
clientConnection: {kubeconfig: %s}
leaderElection: {retryPeriod: 300ms}
logFormat: text
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
`, file, kit.FreePort(f), kit.FreePort(f)), 0o600))
}

// start starts the program.
func (f *fixture) start() {
	f.Helper()
	path, err := binary()
	kit.Must(f, err)
	f.process, err = f.plane.StartProcess("scheduler", path, "--config", f.config)
	kit.Must(f, err)
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	kit.Must(f, f.client.Create(f.Context(), object))
}

// example reads an object from an example.
func example[T any](f *fixture, name string, into *T) *T {
	f.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(f, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "core", name))
	kit.Must(f, err)
	kit.Must(f, yaml.UnmarshalStrict(text, into))
	return into
}

// requests returns the verbs and resources of the program's requests after the first lines of the audit log, without watches and requests for its
// lease and for Events, and the number of lines in the log. It fails if a request was forbidden.
func (f *fixture) requests(skip int) (found []string, lines int) {
	f.Helper()
	file, err := os.Open(f.audit)
	kit.Must(f, err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines++
		var event auditv1.Event
		if json.Unmarshal(scanner.Bytes(), &event) != nil || lines <= skip || event.User.Username != user || event.ObjectRef == nil ||
			event.Stage != auditv1.StageResponseComplete {
			continue // the last line may not be complete yet
		}
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			f.Errorf("the scheduler lacks the permission to %s %s", event.Verb, event.ObjectRef.Resource)
		}
		if resource := event.ObjectRef.Resource; resource != "leases" && resource != "events" && event.Verb != "watch" {
			found = append(found, event.Verb+" "+resource+" "+event.ObjectRef.Subresource)
		}
	}
	kit.Must(f, scanner.Err())
	return found, lines
}

// renewed returns the holder and the number of transitions of the lease, and the time of its last renewal, as one text.
func (f *fixture) renewed() (holder, renewal string) {
	f.Helper()
	lease := &coordinationv1.Lease{}
	if f.client.Get(f.Context(), client.ObjectKey{Namespace: "garden", Name: "gardener-scheduler-leader-election"}, lease) != nil ||
		lease.Spec.HolderIdentity == nil {
		return "", ""
	}
	return *lease.Spec.HolderIdentity, lease.Spec.RenewTime.String()
}

// quiet waits until the leader has renewed its lease twice without sending other requests, and returns the number of lines in the audit log.
func (f *fixture) quiet() int {
	f.Helper()
	_, lines := f.requests(0)
	_, before := f.renewed()
	count := 0
	kit.EventuallyTrue(f, "the scheduler is at rest", func() bool {
		if sent, now := f.requests(lines); len(sent) > 0 {
			count, lines = 0, now
		}
		if _, renewed := f.renewed(); renewed != before {
			count, before = count+1, renewed
		}
		return count > 2
	})
	return lines
}
