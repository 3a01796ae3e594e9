package garbage

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/garbagecollector"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// lists are the listed resources.
var lists = []string{"configmaps", "secrets", "managedresources", "prometheuses", "deployments", "statefulsets", "daemonsets", "cronjobs", "jobs", "pods"}

func isList(request *http.Request, resource string) bool {
	return request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/"+resource)
}

// answer returns an answer in place of the API server.
func answer(request *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// TestListThatFails checks that nothing is deleted if any list fails or has an invalid answer, in the first or the second pass.
func TestListThatFails(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a")
	f.secrets("s")
	status := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"%s","code":%d}`
	for _, resource := range lists {
		for name, response := range map[string]func(*http.Request) *http.Response{
			"not found": func(r *http.Request) *http.Response {
				return answer(r, http.StatusNotFound, fmt.Sprintf(status, "NotFound", http.StatusNotFound))
			},
			"page not found": func(r *http.Request) *http.Response { return answer(r, http.StatusNotFound, "404 page not found") },
			"forbidden": func(r *http.Request) *http.Response {
				return answer(r, http.StatusForbidden, fmt.Sprintf(status, "Forbidden", http.StatusForbidden))
			},
			"no list": func(r *http.Request) *http.Response { return answer(r, http.StatusOK, "{}") },
			"no list of an API server": func(r *http.Request) *http.Response {
				return answer(r, http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`)
			},
			"cut off": func(r *http.Request) *http.Response {
				return answer(r, http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[`)
			},
		} {
			for _, look := range []int{1, 2} {
				seen := 0
				f.requests.answer = func(request *http.Request) *http.Response {
					if !isList(request, resource) {
						return nil
					}
					if seen++; seen != look {
						return nil
					}
					return response(request)
				}
				if look == 2 && (resource == "configmaps" || resource == "secrets") {
					continue // candidates are listed only once
				}
				if err := f.collector.Collect(f.ctx); err == nil || !strings.Contains(err.Error(), "no objects are deleted") && !strings.Contains(err.Error(), "without further deletions") {
					t.Errorf("%s, %s, look %d: %v", resource, name, look, err)
				}
				if len(f.left()) != 2 {
					t.Fatalf("%s, %s, look %d: something was deleted", resource, name, look)
				}
			}
		}
	}
	if f.metric("garbage_collection_failures_total", "list") == 0 || f.metric("garbage_collection_last_success_timestamp_seconds") != 0 {
		t.Error("the metrics do not show the failures")
	}
	f.requests.answer = nil
	f.collect()
	f.wantLeft()
	if got := f.metric("garbage_collection_last_success_timestamp_seconds"); got != float64(f.clock.Now().Unix()) {
		t.Errorf("the last success was at %f", got)
	}
}

// TestConnectionThatBreaks checks the same for connection errors.
func TestConnectionThatBreaks(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a")
	for _, resource := range lists {
		f.requests.before = func(request *http.Request) error {
			if isList(request, resource) {
				return errBroken
			}
			return nil
		}
		if err := f.collector.Collect(f.ctx); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "list ") {
			t.Errorf("%s: %v", resource, err)
		}
		f.wantLeft("a")
	}
}

// TestSecondPageThatFails checks that nothing is deleted if a list fails between its pages, although only later pages have references.
// A list that has expired is read again.
func TestSecondPageThatFails(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a", "b")
	last := newCronJob(f.metaOf("z", nil), nil) // on the second page
	last.Annotations = map[string]string{references.AnnotationKey(references.KindConfigMap, "a"): "a"}
	must(t, f.client.Create(f.ctx, last))
	for i := range 500 {
		must(t, f.client.Create(f.ctx, newCronJob(f.metaOf(fmt.Sprintf("c-%03d", i), nil), nil)))
	}
	f.requests.answer = func(request *http.Request) *http.Response {
		if isList(request, "cronjobs") && request.URL.Query().Get("continue") != "" {
			return answer(request, http.StatusInternalServerError, "no")
		}
		return nil
	}
	if err := f.collector.Collect(f.ctx); err == nil {
		t.Error("the collection has not failed")
	}
	f.wantLeft("a", "b")
	expired := 0
	f.requests.answer = func(request *http.Request) *http.Response {
		if isList(request, "cronjobs") && request.URL.Query().Get("continue") != "" {
			expired++
			return answer(request, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"metadata":{"continue":"x"}}`)
		}
		return nil
	}
	f.collect()
	f.wantLeft("a")
	if expired != 2 {
		t.Errorf("%d pages had expired, want one in each pass", expired)
	}
}

// TestReferenceAddedMeanwhile checks that the second pass finds a reference that is added after the first pass, up to its last list.
func TestReferenceAddedMeanwhile(t *testing.T) {
	for _, resource := range lists[2:] {
		t.Run(resource, func(t *testing.T) {
			f := newFixture(t)
			f.configMaps("a", "b")
			looks := 0
			f.requests.before = func(request *http.Request) error {
				if isList(request, resource) {
					if looks++; looks == 2 {
						f.pod("late", "a")
					}
				}
				return nil
			}
			f.collect()
			f.wantLeft("a")
			if looks != 2 || !strings.Contains(f.log.last(), `"referredToMeanwhile"=1`) {
				t.Errorf("%d passes, and the last line of the log is %s", looks, f.log.last())
			}
		})
	}
}

// TestReferenceAddedBetweenBatches checks that references are read again for every 500 objects.
func TestReferenceAddedBetweenBatches(t *testing.T) {
	f := newFixture(t)
	for i := range 501 {
		f.configMaps(fmt.Sprintf("c%03d", i))
	}
	var once sync.Once
	f.requests.before = func(request *http.Request) error {
		if request.Method == http.MethodDelete {
			once.Do(func() { f.pod("late", "c500") })
		}
		return nil
	}
	f.collect()
	f.wantLeft("c500")
}

// TestHandedDown checks that a reference that moves from a Deployment to a Pod during the lists is found.
func TestHandedDown(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a")
	meta := f.metaOf("d", nil)
	meta.Annotations = map[string]string{references.AnnotationKey(references.KindConfigMap, "a"): "a"}
	deployment := newDeployment(meta, nil)
	must(t, f.client.Create(f.ctx, deployment))
	var once sync.Once
	f.requests.before = func(request *http.Request) error {
		if isList(request, "statefulsets") { // listed between Deployments and Pods
			once.Do(func() {
				f.pod("p", "a")
				must(t, f.client.Delete(f.ctx, deployment))
			})
		}
		return nil
	}
	f.collect()
	f.wantLeft("a")
}

// TestPreconditions checks that an object that was changed or recreated since it was listed is kept, and that a deleted object causes
// no error.
func TestPreconditions(t *testing.T) {
	f := newFixture(t)
	f.configMaps("changed", "unmarked", "anew", "gone", "garbage")
	seen := 0
	f.requests.before = func(request *http.Request) error {
		if !isList(request, "pods") {
			return nil
		}
		if seen++; seen != 2 {
			return nil
		}
		get := func(name string) *corev1.ConfigMap {
			configMap := &corev1.ConfigMap{}
			must(t, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, configMap))
			return configMap
		}
		changed, unmarked := get("changed"), get("unmarked")
		changed.Data = map[string]string{"a": "b"}
		unmarked.Labels = nil
		must(t, f.client.Update(f.ctx, changed))
		must(t, f.client.Update(f.ctx, unmarked))
		must(t, f.client.Delete(f.ctx, get("anew")))
		must(t, f.client.Delete(f.ctx, get("gone")))
		f.configMaps("anew")
		return nil
	}
	f.collect()
	f.wantLeft("changed", "unmarked", "anew")
	if !strings.Contains(f.log.last(), `"deleted"=1`) || !strings.Contains(f.log.last(), `"changedMeanwhile"=3`) {
		t.Errorf("the last line of the log is %s", f.log.last())
	}
	for _, request := range f.requests.take() {
		if request.Method == http.MethodDelete && request.ContentLength < 50 {
			t.Errorf("a deletion without preconditions: %s", request.URL)
		}
	}
	f.collect()
	f.wantLeft("unmarked")
}

// TestDeletionsThatFail checks that all other objects are deleted, and that the error names each failed one.
func TestDeletionsThatFail(t *testing.T) {
	f := newFixture(t)
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("c%02d", i))
	}
	f.configMaps(names...)
	f.secrets("s")
	f.requests.before = func(request *http.Request) error {
		if request.Method == http.MethodDelete && (strings.HasSuffix(request.URL.Path, "/c07") || strings.HasSuffix(request.URL.Path, "/s")) {
			return errBroken
		}
		return nil
	}
	err := f.collector.Collect(f.ctx)
	var deletion *garbagecollector.DeletionError
	if !errors.As(err, &deletion) || len(deletion.Errors) != 2 || !errors.Is(err, errBroken) {
		t.Fatalf("the error is %v", err)
	}
	text := err.Error()
	if !strings.HasPrefix(text, "Could not delete all unused resources: ConfigMap "+f.namespace+"/c07: ") || !strings.Contains(text, "Secret "+f.namespace+"/s: ") {
		t.Errorf("the error is %s", text)
	}
	f.wantLeft("c07", "s")
	if f.metric("garbage_collection_failures_total", "delete") != 2 || f.metric("garbage_collected_total", "ConfigMap") != 39 {
		t.Error("the metrics have other values")
	}
}

// TestFinalizer checks that objects that are already being deleted are skipped.
func TestFinalizer(t *testing.T) {
	f := newFixture(t)
	meta := f.metaOf("held", marked)
	meta.Finalizers = []string{"example.com/hold"}
	held := &corev1.ConfigMap{ObjectMeta: meta}
	must(t, f.client.Create(f.ctx, held))
	f.collect()
	f.requests.take()
	f.collect()
	if count := f.requests.count(http.MethodDelete, ""); count != 0 {
		t.Errorf("%d deletions of objects that are already being deleted", count)
	}
	must(t, f.client.Patch(f.ctx, held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	f.wantLeft()
}

// TestNamespaces checks that only the configured namespaces are changed or read. If none are configured, all are.
func TestNamespaces(t *testing.T) {
	f := newFixture(t)
	second, other := f.newNamespace(), f.newNamespace()
	f.configMaps("a", "kept")
	f.pod("pod", "kept")
	for _, namespace := range []string{second, other} {
		must(t, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s", Labels: marked}}))
	}
	f.collector.Options.Namespaces = []string{f.namespace, second, "does-not-exist"}
	f.collect()
	f.wantLeft("kept")
	if len(f.leftIn(second)) != 0 || len(f.leftIn(other)) != 1 {
		t.Errorf("the remaining objects are %q and, in another namespace, %q", f.leftIn(second), f.leftIn(other))
	}
	for _, request := range f.requests.take() {
		if isAnyList(request) && !strings.Contains(request.URL.Path, "/namespaces/") {
			t.Errorf("the collector reads all namespaces: %s", request.URL)
		}
	}
	f.collector.Options.Namespaces = nil
	f.collect()
	f.wantLeft("kept")
	if len(f.leftIn(other)) != 0 {
		t.Error("without configured namespaces, not all namespaces are collected")
	}
}

func isAnyList(request *http.Request) bool {
	for _, resource := range lists {
		if isList(request, resource) {
			return true
		}
	}
	return false
}

// TestMetadataAlone checks that every list requests metadata, in pages, and the current state.
func TestMetadataAlone(t *testing.T) {
	f := newFixture(t)
	f.collect()
	if requests := f.requests.take(); len(requests) != 2 {
		t.Errorf("%d requests without a candidate", len(requests))
	}
	f.configMaps("a")
	f.collect()
	for _, request := range f.requests.take() {
		if !isAnyList(request) {
			continue
		}
		query := request.URL.Query()
		if !strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadataList") || query.Get("limit") != "500" || query.Get("resourceVersion") != "" {
			t.Errorf("%s requests %s", request.URL, request.Header.Get("Accept"))
		}
	}
}

// TestKindsThatAreNotThere checks that if the API does not have ManagedResources and Prometheuses, they hold no references.
func TestKindsThatAreNotThere(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(func() { installDefinitions(t, shared.Get(t).Config()) })
	for _, name := range []string{"managedresources.resources.gardener.cloud", "prometheuses.monitoring.coreos.com"} {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		must(t, f.client.Delete(f.ctx, definition))
		f.eventually(name+" no longer exists", func() bool {
			gone, err := f.collector.Kinds.Abolished(f.ctx, kindOf(name))
			return err == nil && gone
		})
	}
	f.configMaps("a", "b")
	f.pod("pod", "a")
	f.requests.before = func(request *http.Request) error {
		if strings.HasSuffix(request.URL.Path, "/readyz") {
			return errBroken
		}
		return nil
	}
	if err := f.collector.Collect(f.ctx); !errors.Is(err, errBroken) {
		t.Errorf("the error with failing discovery is %v", err)
	}
	f.wantLeft("a", "b")
	f.requests.before = nil
	f.collect()
	f.wantLeft("a")
	if !strings.Contains(f.log.last(), `"deleted"=1`) {
		t.Errorf("the last line of the log is %s", f.log.last())
	}
}
