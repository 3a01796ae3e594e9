package controllermanager

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/cmd/controller-manager/app"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
)

const (
	seedName = "local"
	user     = "system:serviceaccount:garden:gardener-controller-manager"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// binary builds the program once and returns its path.
var binary = sync.OnceValues(controlplane.BuildProgram[app.Program])

// fixture is a garden. The controller-manager has only the permissions that its chart grants.
type fixture struct {
	*testing.T
	// options of the garden, and further controllers in the configuration.
	options        garden.Options
	controllers    string
	plane          *garden.Garden
	client         client.Client
	audit          string
	config, health string
	process        *controlplane.Process
}

func newFixture(t *testing.T, change ...func(*fixture)) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	f := &fixture{T: t, audit: filepath.Join(t.TempDir(), "audit.log")}
	server, err := garden.Binary()
	kit.Must(t, err)
	f.options = garden.Options{APIServer: server, ControlPlane: controlplane.Options{AuditLog: f.audit}}
	for _, each := range change {
		each(f)
	}
	f.plane, err = garden.Start(t.Context(), f.options)
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, f.plane.KillAPIServer()) // a graceful stop would wait for watches to end
		kit.Must(t, f.plane.Stop())
	})
	t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(f.plane.Dir(), "controller-manager.log")); err == nil && t.Failed() {
			t.Logf("log of the controller-manager:\n%s", log)
		}
	})
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, served.AddToScheme(scheme))
	f.client, err = client.New(f.plane.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
	charts.Apply(t, f.client, "controller-manager", nil, charts.IsRight)
	f.configure("monitorPeriod: 1h")
	return f
}

// configure writes the kubeconfig and the configuration file with settings of the controllers of Seeds.
func (f *fixture) configure(seed string) {
	f.Helper()
	file := kit.AccountKubeconfig(f, f.plane.Config(), f.client, "garden", "gardener-controller-manager")
	directory := f.TempDir()
	health, metrics := kit.FreePort(f), kit.FreePort(f)
	f.health = fmt.Sprintf("http://127.0.0.1:%d", health)
	f.config = filepath.Join(directory, "config.yaml")
	kit.Must(f, os.WriteFile(f.config, fmt.Appendf(nil, `apiVersion: controllermanager.config.gardener.cloud/v1alpha1
kind: ControllerManagerConfiguration
gardenClientConnection: {kubeconfig: %s}
logFormat: text
controllers: {seed: {%s}, shootRetry: {retryPeriod: 1s, retryJitterPeriod: 0s}, seedExtensionsCheck: {conditionThresholds: [{type: ExtensionsReady, duration: 1h}]}%s}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
`, file, seed, f.controllers, health, metrics), 0o600))
}

// change replaces a text in the configuration file.
func (f *fixture) change(old, text string) {
	f.Helper()
	content, err := os.ReadFile(f.config)
	kit.Must(f, err)
	kit.Must(f, os.WriteFile(f.config, bytes.Replace(content, []byte(old), []byte(text), 1), 0o600))
}

// start starts the program and waits until it is ready and has become the leader.
func (f *fixture) start() {
	f.Helper()
	path, err := binary()
	kit.Must(f, err)
	f.process, err = f.plane.StartProcess("controller-manager", path, "--config", f.config)
	kit.Must(f, err)
	kit.EventuallyTrue(f, "the controller-manager is ready", func() bool {
		request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.health+"/readyz", http.NoBody)
		kit.Must(f, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		kit.Must(f, response.Body.Close())
		return response.StatusCode == http.StatusOK
	})
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	kit.Must(f, f.client.Create(f.Context(), object))
}

// delete deletes an object after it has confirmed that.
func (f *fixture) delete(object client.Object) {
	f.Helper()
	confirmation := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, constants.AnnotationConfirmationDeletion)
	kit.Must(f, f.client.Patch(f.Context(), object, client.RawPatch(types.MergePatchType, confirmation)))
	kit.Must(f, f.client.Delete(f.Context(), object))
}

// exists reads an object, and reports whether it exists.
func (f *fixture) exists(object client.Object) bool {
	f.Helper()
	err := f.client.Get(f.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return false
	}
	kit.Must(f, err)
	return true
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

// installations returns the installations of the Seed by the names of their registrations.
func (f *fixture) installations() map[string]*corev1beta1.ControllerInstallation {
	f.Helper()
	var list corev1beta1.ControllerInstallationList
	kit.Must(f, f.client.List(f.Context(), &list, client.MatchingFields{"spec.seedRef.name": seedName}))
	found := map[string]*corev1beta1.ControllerInstallation{}
	for i := range list.Items {
		found[list.Items[i].Spec.RegistrationRef.Name] = &list.Items[i]
	}
	return found
}

// eventuallyInstalled waits until exactly these registrations are installed in the Seed.
func (f *fixture) eventuallyInstalled(names ...string) {
	f.Helper()
	slices.Sort(names)
	kit.Eventually(f, fmt.Sprintf("exactly %q are installed", names), func() string {
		var found []string
		for name := range f.installations() {
			found = append(found, name)
		}
		slices.Sort(found)
		if slices.Equal(found, names) {
			return ""
		}
		return fmt.Sprintf("%q", found)
	})
}

// requests returns the program's requests after the first lines of the audit log, without watches and requests for its
// lease, and the number of lines in the log.
func (f *fixture) requests(skip int) (found []auditv1.Event, lines int) {
	f.Helper()
	file, err := os.Open(f.audit)
	kit.Must(f, err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines++
		var event auditv1.Event
		if json.Unmarshal(scanner.Bytes(), &event) != nil {
			continue // the last line is not complete yet
		}
		if lines > skip && event.User.Username == user && event.Stage == auditv1.StageResponseComplete && event.ObjectRef != nil &&
			event.ObjectRef.Resource != "leases" && event.Verb != "watch" {
			found = append(found, event)
		}
	}
	kit.Must(f, scanner.Err())
	return found, lines
}

// described returns the distinct verbs and resources of the requests, sorted.
func described(events []auditv1.Event) []string {
	var texts []string
	for _, event := range events {
		texts = append(texts, event.Verb+" "+event.ObjectRef.Resource)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// withoutEvents removes requests for Events. An Event that follows another one too soon is sent ten seconds later.
func withoutEvents(events []auditv1.Event) []auditv1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(event auditv1.Event) bool { return event.ObjectRef.Resource == "events" })
}

// quiet waits until the leader has renewed its lease several times without sending other requests, and returns the number
// of lines in the audit log.
func (f *fixture) quiet() int {
	f.Helper()
	const renewals = 2
	_, lines := f.requests(0)
	count, before := 0, f.renewed()
	kit.EventuallyTrue(f, "the controller-manager is at rest", func() bool {
		if sent, now := f.requests(lines); len(withoutEvents(sent)) > 0 {
			count, lines = 0, now
		}
		if renewed := f.renewed(); renewed != before {
			count, before = count+1, renewed
		}
		return count > renewals
	})
	return lines
}

// renewed returns the time of the leader's last lease renewal.
func (f *fixture) renewed() time.Time {
	f.Helper()
	lease := &unstructured.Unstructured{}
	lease.SetAPIVersion("coordination.k8s.io/v1")
	lease.SetKind("Lease")
	lease.SetNamespace("garden")
	lease.SetName("gardener-controller-manager-leader-election")
	if !f.exists(lease) {
		return time.Time{}
	}
	text, _, err := unstructured.NestedString(lease.Object, "spec", "renewTime")
	kit.Must(f, err)
	renewed, err := time.Parse(time.RFC3339Nano, text)
	kit.Must(f, err)
	return renewed
}
