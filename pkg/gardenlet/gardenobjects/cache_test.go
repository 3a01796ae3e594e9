package gardenobjects

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// fakeGarden is a garden whose API server has no Secrets and counts watches.
type fakeGarden struct {
	cluster.Cluster

	config  *rest.Config
	http    *http.Client
	watches atomic.Int64
	// refuses is set while the garden refuses all requests.
	refuses atomic.Bool
}

func (g *fakeGarden) GetConfig() *rest.Config       { return g.config }
func (g *fakeGarden) GetHTTPClient() *http.Client   { return g.http }
func (g *fakeGarden) GetScheme() *apiruntime.Scheme { return clientgoscheme.Scheme }
func (g *fakeGarden) GetRESTMapper() meta.RESTMapper {
	return testrestmapper.TestOnlyStaticRESTMapper(clientgoscheme.Scheme)
}

// ServeHTTP answers lists and watches of Secrets.
func (g *fakeGarden) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if g.refuses.Load() {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no right"}`)
		return
	}
	if r.URL.Query().Get("watch") == "" {
		_, _ = fmt.Fprint(w, `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		return
	}
	g.watches.Add(1)
	defer g.watches.Add(-1)
	w.WriteHeader(http.StatusOK)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":`+
			`{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	<-r.Context().Done()
}

func startCache(t *testing.T) (*fakeGarden, *Cache) {
	t.Helper()
	garden := &fakeGarden{}
	server := httptest.NewServer(garden)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	garden.config = &rest.Config{Host: server.URL, QPS: -1}
	var err error
	if garden.http, err = rest.HTTPClientFor(garden.config); err != nil {
		t.Fatal(err)
	}
	c := New(garden)
	go func() { _ = c.Start(t.Context()) }()
	return garden, c
}

// read reads Secrets that do not exist for a user.
func read(t *testing.T, c *Cache, user User, names ...string) {
	t.Helper()
	for _, name := range names {
		err := c.Get(t.Context(), user, client.ObjectKey{Namespace: "garden-dev", Name: name}, &corev1.Secret{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			t.Fatal(err)
		}
	}
}

// await waits until a number is the wanted one.
func await(t *testing.T, what string, want int, number func() int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); number() != want; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d %s, want %d", number(), what, want)
		}
	}
}

// TestWatchesEndWithTheirUsers checks that nothing is left of an object once no user reads it: because the user is gone, or
// does not refer to it any more.
func TestWatchesEndWithTheirUsers(t *testing.T) {
	garden, c := startCache(t)
	watches := func() int { return int(garden.watches.Load()) }
	one := User{Kind: "Shoot", ObjectKey: client.ObjectKey{Namespace: "garden-dev", Name: "one"}}
	two := User{Kind: "Shoot", ObjectKey: client.ObjectKey{Namespace: "garden-dev", Name: "two"}}

	end := c.Begin(one)
	read(t, c, one, "shared", "dns", "audit")
	end()
	read(t, c, two, "shared")
	await(t, "watches", 3, watches)

	end = c.Begin(one)
	read(t, c, one, "shared", "dns")
	end()
	await(t, "watches after a reference was removed", 2, watches)

	c.Begin(one) // a pass that fails
	read(t, c, one, "dns")
	await(t, "watches after a failed pass", 2, watches)

	c.Release(one)
	await(t, "watches of the other user", 1, watches)
	read(t, c, two, "shared")
	c.Release(two)
	await(t, "watches without users", 0, watches)
	if len(c.watches)+len(c.passes) > 0 {
		t.Errorf("%d watches and %d passes are remembered", len(c.watches), len(c.passes))
	}
}

// TestRefusal checks that a refusal is returned without a delay, and that the object is read once the garden permits it.
func TestRefusal(t *testing.T) {
	garden, c := startCache(t)
	garden.refuses.Store(true)
	one := User{Kind: "Shoot", ObjectKey: client.ObjectKey{Namespace: "garden-dev", Name: "one"}}
	get := func() error {
		return c.Get(t.Context(), one, client.ObjectKey{Namespace: "garden-dev", Name: "dns"}, &corev1.Secret{})
	}
	if err := get(); !apierrors.IsForbidden(err) {
		t.Fatalf("the error is %v", err)
	}
	garden.refuses.Store(false)
	await(t, "answers", 1, func() int {
		if err := get(); apierrors.IsNotFound(err) {
			return 1
		} else if !apierrors.IsForbidden(err) {
			t.Fatalf("the error is %v", err)
		}
		return 0
	})
}

// TestNothingGrows reads an object for many users that are then released, and compares the goroutines.
func TestNothingGrows(t *testing.T) {
	garden, c := startCache(t)
	user := func(number int) User {
		return User{Kind: "Shoot", ObjectKey: client.ObjectKey{Namespace: "garden-dev", Name: fmt.Sprint(number)}}
	}
	lives := func(number int) {
		read(t, c, user(number), fmt.Sprint("secret-of-", number))
		c.Release(user(number))
		await(t, "watches", 0, func() int { return int(garden.watches.Load()) })
		garden.http.CloseIdleConnections()
	}
	lives(0)
	before := runtime.NumGoroutine()
	for number := range 10 {
		lives(number)
	}
	await(t, "additional goroutines", 0, func() int { return max(runtime.NumGoroutine()-before, 0) })
}
