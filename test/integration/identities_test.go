package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// TestIdentitiesShareDiscovery: the known kinds of a cluster do not depend on the user. So a ServiceAccount causes no
// discovery request, and no memory is kept for one whose objects were applied.
func TestIdentitiesShareDiscovery(t *testing.T) {
	const identities, mostBytesEach = 500, 8 << 10
	f := newFixture(t)
	f.define(100) // a cluster with add-ons has about that many
	accounts := f.serviceAccounts(identities)

	requests := &requestLog{}
	config := rest.CopyConfig(shared.Get(t).Config())
	config.QPS = -1
	config.Wrap(requests.wrap)
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	objects, err := target.NewObjects(config, httpClient)
	must(t, err)
	engine := apply.NewEngine(objects, apply.Settings{Policy: fieldowner.DefaultPolicy()}, clock.RealClock{})
	applyAs := func(account types.NamespacedName) {
		t.Helper()
		as, err := engine.As(t.Context(), account)
		must(t, err)
		for _, outcome := range as.Apply(t.Context(), []apply.Task{{Manifest: configMapOf(account)}}) {
			must(t, outcome.Err)
		}
	}
	applyAs(accounts[0]) // the cost of the first one is not the cost per identity
	requests.discoveries()
	heapBefore, residentBefore := f.memory()
	for _, account := range accounts[1:] {
		applyAs(account)
	}
	heapAfter, residentAfter := f.memory()
	discoveries := requests.discoveries()
	runtime.KeepAlive(engine)

	heap := heapAfter - heapBefore
	t.Logf("%d further ServiceAccounts: %d discovery requests, heap +%d KiB (%d bytes each), resident memory %+d KiB (now %d KiB)",
		identities-1, len(discoveries), heap>>10, heap/(identities-1), (residentAfter-residentBefore)>>10, residentAfter>>10)
	if len(discoveries) > 0 {
		t.Errorf("%d discovery requests, want none; the first is %s", len(discoveries), discoveries[0])
	}
	if heap/(identities-1) > mostBytesEach {
		t.Errorf("%d bytes stay in memory for each ServiceAccount, want at most %d", heap/(identities-1), mostBytesEach)
	}
}

// define creates CustomResourceDefinitions in separate groups for the duration of the test.
func (f *fixture) define(count int) {
	f.Helper()
	for i := range count {
		text, _ := f.ofGroup(fmt.Sprintf("d%d.", i))
		definition := f.parse(text)
		must(f, f.client.Create(f.ctx, definition))
		f.Cleanup(func() { _ = f.client.Delete(context.Background(), definition) })
	}
}

// serviceAccounts creates ServiceAccounts that may write ConfigMaps in the fixture's namespace.
func (f *fixture) serviceAccounts(count int) []types.NamespacedName {
	f.Helper()
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: "writers"}
	must(f, f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"},
	}}}))
	must(f, f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + f.namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}))
	accounts := make([]types.NamespacedName, count)
	for i := range accounts {
		accounts[i] = types.NamespacedName{Namespace: f.namespace, Name: "tenant-" + strconv.Itoa(i)}
		must(f, f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: accounts[i].Name}}))
	}
	return accounts
}

func configMapOf(account types.NamespacedName) object.Manifest {
	body := fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q},"apiVersion":"v1","data":{"key":"value"},"kind":"ConfigMap"}`,
		account.Namespace, account.Name)
	return object.Manifest{
		Ref: object.Ref{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: account.Namespace, Name: account.Name,
		},
		Body: []byte(body),
	}
}

// memory returns the bytes of the heap in use and of the process's resident memory, after a garbage collection.
func (f *fixture) memory() (heap, resident int) {
	f.Helper()
	runtime.GC() // a second collection frees objects that finalizers released
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	statm, err := os.ReadFile("/proc/self/statm")
	must(f, err)
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	must(f, err)
	return int(stats.HeapAlloc), pages * os.Getpagesize()
}

// TestKindNotServedCostsOneAnswer: for any number of objects of a kind that is not served, each reconcile asks the
// API server once for the kind and once for the group. A CustomResourceDefinition that another client creates takes
// effect at once.
func TestKindNotServedCostsOneAnswer(t *testing.T) {
	const count, mostRequests = 30, 2
	f := newFixture(t)
	definition, example := f.ofGroup("late.")
	documents := []string{f.configMap("one", "1")}
	for i := range count {
		document := f.parse(example)
		document.SetName(fmt.Sprintf("object-%d", i))
		text, err := yaml.Marshal(document)
		must(t, err)
		documents = append(documents, string(text))
	}
	f.manage("set", documents...)
	_, _, _ = f.reconcile("set") // discovers the cluster's kinds
	f.requests.discoveries()
	for range 2 {
		mr, _, _ := f.reconcile("set")
		wantContains(t, applied(mr).Message, "does not serve this kind")
		discoveries := f.requests.discoveries()
		t.Logf("%d discovery requests for %d objects of a kind that is not served", len(discoveries), count)
		if len(discoveries) > mostRequests {
			t.Errorf("%d discovery requests, want at most %d: %s", len(discoveries), mostRequests, discoveries)
		}
	}

	crd := f.parse(definition)
	must(t, f.client.Create(f.ctx, crd))
	f.Cleanup(func() { _ = f.client.Delete(context.Background(), crd) })
	f.awaitServed(example)
	mr := f.reconcileOK("set")
	if len(mr.Status.Resources) != len(documents) {
		t.Errorf("the inventory has %d objects, want %d", len(mr.Status.Resources), len(documents))
	}
}

// awaitServed waits until the API server serves the kind of an object to all users.
func (f *fixture) awaitServed(manifest string) {
	f.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(f.parse(manifest).GroupVersionKind())
	f.eventually("the kind is served", func() bool {
		c, err := client.New(shared.Get(f).Config(), client.Options{})
		must(f, err)
		return c.List(f.ctx, list) == nil
	})
}

// discoveries returns the discovery requests since the last call, in order.
func (l *requestLog) discoveries() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		method, path, _ := strings.Cut(line, " ")
		parts := strings.Split(strings.Trim(path, "/"), "/")
		if method == http.MethodGet && (parts[0] == "apis" && len(parts) <= 3 || parts[0] == "api" && len(parts) <= 2) {
			found = append(found, line)
		}
	}
	l.lines = nil
	return found
}
