package target

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// apiServer serves discovery, and records the requests and their users.
type apiServer struct {
	mu     sync.Mutex
	groups map[string][]string // versions with the kind Thing by group
	down   bool
	asked  []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Header.Get("Impersonate-User")+r.URL.Path)
	answer := s.answer(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	switch {
	case s.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case answer == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (s *apiServer) answer(path []string) any {
	switch {
	case len(path) == 1 && path[0] == "api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(path) == 1:
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for name := range s.groups {
			list.Groups = append(list.Groups, *s.group(name))
		}
		return list
	case path[0] == "api":
		return resourcesOf(corev1.SchemeGroupVersion, "ConfigMap")
	case len(path) == 2 && s.groups[path[1]] != nil:
		return s.group(path[1])
	case len(path) == 3 && slices.Contains(s.groups[path[1]], path[2]):
		return resourcesOf(schema.GroupVersion{Group: path[1], Version: path[2]}, "Thing")
	}
	return nil
}

func (s *apiServer) group(name string) *metav1.APIGroup {
	group := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, version := range s.groups[name] {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

func resourcesOf(gv schema.GroupVersion, kind string) *metav1.APIResourceList {
	return &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true, Verbs: []string{"get"}}},
	}
}

// set changes the served groups.
func (s *apiServer) set(change func(*apiServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// requests returns the requests since the last call.
func (s *apiServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func newTestObjects(tb testing.TB) (*Objects, *apiServer, *clocktesting.FakePassiveClock) {
	tb.Helper()
	server := &apiServer{groups: map[string][]string{"apps.example.org": {"v1"}}}
	listening := httptest.NewServer(server)
	tb.Cleanup(listening.Close)
	objects, err := NewObjects(&rest.Config{Host: listening.URL, QPS: -1}, &http.Client{})
	if err != nil {
		tb.Fatal(err)
	}
	clk := clocktesting.NewFakePassiveClock(time.Now())
	objects.clock = clk
	if _, err := objects.Mapping(corev1.SchemeGroupVersion.WithKind("ConfigMap")); err != nil {
		tb.Fatal(err)
	}
	server.requests()
	return objects, server, clk
}

func thing(group, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
}

func wantRequests(t *testing.T, server *apiServer, want ...string) {
	t.Helper()
	if got := server.requests(); !slices.Equal(got, want) {
		t.Errorf("the API server got the requests %q, want %q", got, want)
	}
}

// TestAbsenceHolds checks that the answer that a kind is not served is reused for a batch, and that a caller can request a new
// answer.
func TestAbsenceHolds(t *testing.T) {
	objects, server, clk := newTestObjects(t)
	late := thing("late.example.org", "v1")
	ref := object.Ref{GroupVersionKind: late, Namespace: "a", Name: "b"}
	mapping := func() error { _, err := objects.Mapping(late); return err }
	discover := func() error { _, err := objects.Discover(late); return err }
	inAnyVersion := func() error { _, err := objects.ResourceInAnyVersion(ref); return err }
	for range 50 {
		for _, ask := range []func() error{mapping, inAnyVersion} {
			if err := ask(); !errors.Is(err, ErrKindNotServed) {
				t.Fatalf("the error is %v", err)
			}
		}
	}
	wantRequests(t, server, "/apis/late.example.org/v1", "/apis/late.example.org")
	clk.SetTime(clk.Now().Add(absenceHolds))
	if err := mapping(); !errors.Is(err, ErrKindNotServed) {
		t.Errorf("the error is %v", err)
	}
	wantRequests(t, server, "/apis/late.example.org/v1")

	server.set(func(s *apiServer) { s.groups["late.example.org"] = []string{"v1"} })
	if err := mapping(); !errors.Is(err, ErrKindNotServed) {
		t.Errorf("the answer is not reused: %v", err)
	}
	for _, ask := range []func() error{discover, mapping, inAnyVersion} {
		if err := ask(); err != nil {
			t.Errorf("the new kind is not found: %v", err)
		}
	}
	wantRequests(t, server, "/apis/late.example.org/v1")
}

// TestAbsenceIsNoFailure checks that a failed discovery is not remembered as the absence of a kind.
func TestAbsenceIsNoFailure(t *testing.T) {
	objects, server, _ := newTestObjects(t)
	server.set(func(s *apiServer) { s.down = true })
	if _, err := objects.Mapping(thing("apps.example.org", "v2")); err == nil || errors.Is(err, ErrKindNotServed) {
		t.Errorf("the error is %v", err)
	}
	server.set(func(s *apiServer) { s.down, s.groups["apps.example.org"] = false, []string{"v1", "v2"} })
	if _, err := objects.Mapping(thing("apps.example.org", "v2")); err != nil {
		t.Error(err)
	}
}

// TestOtherVersionHolds checks that a kind that is served in another version is discovered once for each batch.
func TestOtherVersionHolds(t *testing.T) {
	objects, server, _ := newTestObjects(t)
	for range 20 {
		mapping, err := objects.mappingInAnyVersion(thing("apps.example.org", "v1beta1"))
		if err != nil || mapping.Resource.Version != "v1" {
			t.Fatalf("%v, %v", mapping, err)
		}
	}
	if got := server.requests(); len(got) > 4 {
		t.Errorf("the API server got the requests %q", got)
	}
}

// TestConcurrentQuestions checks that concurrent requests for a kind share a few answers.
func TestConcurrentQuestions(t *testing.T) {
	objects, server, _ := newTestObjects(t)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if _, err := objects.Mapping(thing("late.example.org", "v1")); !errors.Is(err, ErrKindNotServed) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	group.Wait()
	if got := server.requests(); len(got) > 10 { // more than one if callers checked for an answer just before the first one arrived
		t.Errorf("the API server got %d requests", len(got))
	}
}

// TestMappingThatIsOutdated checks that a mapping is dropped once, however many requests fail because of it, including a
// mapping of another version.
func TestMappingThatIsOutdated(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		objects, server, _ := newTestObjects(t)
		ref := object.Ref{GroupVersionKind: thing("apps.example.org", version), Namespace: "a", Name: "b"}
		if _, err := objects.ResourceInAnyVersion(ref); err != nil {
			t.Fatal(err)
		}
		server.set(func(s *apiServer) { delete(s.groups, "apps.example.org") })
		server.requests()
		notFound := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "b", "404 page not found", 0, true)
		before := objects.currentMapper()
		if err := objects.Explain(ref, notFound); !errors.Is(err, ErrKindNotServed) || objects.currentMapper() == before {
			t.Errorf("%s: the error is %v", version, err)
		}
		before = objects.currentMapper()
		if err := objects.Explain(ref, notFound); !errors.Is(err, ErrKindNotServed) || objects.currentMapper() != before {
			t.Errorf("%s: the mapper is replaced again: %v", version, err)
		}
		if _, err := objects.ResourceInAnyVersion(ref); !errors.Is(err, ErrKindNotServed) {
			t.Errorf("%s: the error is %v", version, err)
		}
	}
}

// TestAs checks that a ServiceAccount is impersonated for requests, but not for discovery.
func TestAs(t *testing.T) {
	objects, server, _ := newTestObjects(t)
	as, err := objects.As(types.NamespacedName{Namespace: "a", Name: "robot"})
	if err != nil {
		t.Fatal(err)
	}
	ref := object.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "a", Name: "b"}
	resource, err := as.Resource(ref)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = resource.Get(t.Context(), "b", metav1.GetOptions{})
	wantRequests(t, server, "system:serviceaccount:a:robot/api/v1/namespaces/a/configmaps/b")
}

// BenchmarkAs measures the cost of a pass that impersonates a ServiceAccount, without its requests.
func BenchmarkAs(b *testing.B) {
	objects, _, _ := newTestObjects(b)
	i := 0
	for b.Loop() {
		i++
		if _, err := objects.As(types.NamespacedName{Namespace: "a", Name: strconv.Itoa(i)}); err != nil {
			b.Fatal(err)
		}
	}
}
