package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

func TestSitesHaveNames(t *testing.T) {
	for request, want := range map[string]string{
		"GET /api":                                       "get_discovery_api",
		"GET /apis/apps/v1":                              "get_discovery_apis.apps.v1",
		"GET /api/v1/namespaces":                         "list_namespaces",
		"GET /api/v1/namespaces/a":                       "get_namespaces_a",
		"PUT /api/v1/namespaces/a/finalize":              "update_namespaces.finalize_a",
		"GET /api/v1/namespaces/a/configmaps?watch=true": "watch_configmaps",
		"PATCH /api/v1/namespaces/a/configmaps/b?fieldManager=resource-manager":                        "patch_configmaps_b",
		"DELETE /api/v1/namespaces/a/configmaps":                                                       "deletecollection_configmaps",
		"DELETE /apis/example.org/v1/things/b":                                                         "delete_things_b",
		"POST /apis/events.k8s.io/v1/namespaces/a/events":                                              "create_events",
		"PATCH /apis/g/v1/namespaces/a/managedresources/m/status?fieldManager=resource-manager-health": "patch_managedresources.status.health_m",
	} {
		method, target, _ := strings.Cut(request, " ")
		parsed, err := url.Parse(target)
		kit.Must(t, err)
		if got := callOf(method, parsed).String(); got != want {
			t.Errorf("%s is %s, want %s", request, got, want)
		}
	}
}

// TestNamesOfShootsLifeAreTheSame checks that the names of sites contain no digits that differ between runs.
func TestNamesOfShootsLifeAreTheSame(t *testing.T) {
	for name, want := range map[string]string{
		"ca-client": "ca-client", "ca-client-0a1b2c3d": "ca-client-DIGITS", "ca-client-0a1b2c3d-4e5f6": "ca-client-DIGITS",
		"one.18eac8a95bea79fb": "one-DIGITS", "one.ca-cluster": "one.ca-cluster",
	} {
		if got := withoutDigits(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestFaultsDoWhatTheySay injects each fault into the second of three calls.
func TestFaultsDoWhatTheySay(t *testing.T) {
	for _, fault := range allFaults() {
		t.Run(fault.name, func(t *testing.T) {
			var served atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				served.Add(1)
				fmt.Fprint(w, "what was asked for")
			}))
			defer server.Close()
			here := site{call{verb: "delete", resource: "configmaps", namespace: placeholder, name: "one"}, 2}
			l := &line{rename: strings.NewReplacer("run-1", placeholder), plans: []*plan{{site: here, fault: fault}}}
			l.begin()
			life := l.newLife("")
			defer life.end()
			transport := life.wrap(http.DefaultTransport)
			ask := func() (status int, body string, err error) {
				request, err := http.NewRequest(http.MethodDelete, server.URL+"/api/v1/namespaces/run-1/configmaps/one", nil)
				kit.Must(t, err)
				response, err := transport.RoundTrip(request)
				if err != nil {
					return 0, "", err
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				return response.StatusCode, string(text), err
			}
			if status, _, err := ask(); status != http.StatusOK || err != nil {
				t.Fatalf("the first call: status %d, error %v", status, err)
			}
			status, body, err := ask()
			checkFault(t, fault.name, status, body, err)
			want := int64(1)
			for _, reaches := range []bool{fault.carriedOut, fault.meanwhile != nil} {
				if reaches {
					want++
				}
			}
			if got := served.Load(); got != want {
				t.Errorf("%d requests were received, want %d", got, want)
			}
			if status, _, err = ask(); (err == nil && status == http.StatusOK) == fault.crashes {
				t.Errorf("the third call: status %d, error %v", status, err)
			}
			if visited, injected := l.visited(), l.injected(l.plans[0]); !injected || !slices.Contains(visited, here) {
				t.Errorf("injected: %t at %v", injected, visited)
			}
		})
	}
}

// TestFaultsOfOneRun injects two faults into three calls, each once.
func TestFaultsOfOneRun(t *testing.T) {
	called := call{verb: "get", resource: "configmaps", name: "one"}
	plans := []*plan{{site: site{called, 3}, fault: fault{name: "later"}}, {site: site{called, 2}, fault: fault{name: "sooner"}}}
	l := &line{rename: strings.NewReplacer(), plans: plans}
	l.begin()
	var met []string
	for range 2 * len(plans) {
		if fault := l.enter(called); fault != nil {
			met = append(met, fault.name)
		}
	}
	// Only the first two repeated reads fail.
	if !slices.Equal(met, []string{"sooner"}) || l.injected(plans[0]) || !l.injected(plans[1]) {
		t.Errorf("reads meet %v", met)
	}
	called.verb = "patch"
	plans[0].site.call, plans[1].site.call, plans[1].injected = called, called, false
	met = nil
	for range 2 * len(plans) {
		if fault := l.enter(called); fault != nil {
			met = append(met, fault.name)
		}
	}
	if !slices.Equal(met, []string{"sooner", "later"}) || !l.injected(plans[0]) || !l.injected(plans[1]) {
		t.Errorf("writes meet %v", met)
	}
}

// TestSpread checks that the faults of a run are far from each other and that each fault is part of a run.
func TestSpread(t *testing.T) {
	var plans []*plan
	for i := range 7 {
		plans = append(plans, &plan{site: site{occurrence: i}})
	}
	var got [][]int
	for _, run := range spread(plans, 3) {
		var sites []int
		for _, p := range run {
			sites = append(sites, p.site.occurrence)
		}
		got = append(got, sites)
	}
	if want := [][]int{{0, 3, 6}, {1, 4}, {2, 5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the sites of the runs are %v, want %v", got, want)
	}
	if got := spread(nil, 3); len(got) != 0 {
		t.Errorf("some runs have no fault: %v", got)
	}
}

// checkFault checks the response of a client that a fault was injected into.
func checkFault(t *testing.T, name string, status int, body string, err error) {
	t.Helper()
	kind, number, _ := strings.Cut(name, "-")
	switch kind {
	case "crash":
		if !errors.Is(err, errCrashed) {
			t.Errorf("the error is %v", err)
		}
	case "deleted", "unlabelled":
		if status != http.StatusOK || body != "what was asked for" || err != nil {
			t.Errorf("the response is %d %s %v, want the response of the API server", status, body, err)
		}
	case "timeout":
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	case "reset":
		if !errors.Is(err, syscall.ECONNRESET) || body != "what was " {
			t.Errorf("the error is %v after %q", err, body)
		}
	default:
		if fmt.Sprint(status) != number || !strings.Contains(body, `"kind":"Status"`) || err != nil {
			t.Errorf("the response is %d %s %v, want %s", status, body, err, number)
		}
	}
}

// TestLossIsNoticed makes forbidden changes by hand and checks that each is found.
func TestLossIsNoticed(t *testing.T) {
	t.Parallel()
	one, two := configMap("one", "1"), configMap("two", "1")
	w := newWorld(t, scenario{given: state{"a": {one, two}}, then: state{"a": {one, two}, "b": {configMap("three", "1")}}, pruneDelay: soon})
	w.play(w.newLine())
	undisturbed := w.snapshot()
	if findings := w.findings(undisturbed); len(findings) > 0 {
		t.Fatal(findings)
	}
	patch := func(name, patch string) {
		kit.Must(t, w.client.Patch(t.Context(), w.configMap(name), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	for _, damage := range []struct {
		what string
		do   func()
		want string
	}{
		{"a write to what is not ours", func() { patch("of-a-person", `{"data": {"more": "x"}}`) }, "of-a-person of another owner was changed"},
		{"another value", func() { patch("one", `{"data": {"key": "2"}}`) }, "one: data is map[key:2"},
		{"another label", func() { patch("two", `{"metadata": {"labels": {"more": "x"}}}`) }, "differs from that of a run without a fault"},
		{"an inventory that is too small", func() {
			kit.Must(t, w.client.Status().Patch(t.Context(), w.managedResource("b"),
				client.RawPatch(types.MergePatchType, []byte(`{"status": {"resources": []}}`))))
		}, "the inventory of b is [], want [ConfigMap"},
		{"an orphan", func() {
			orphan := w.configMap("orphan")
			orphan.Annotations = map[string]string{resourcesv1alpha1.AnnotationOrigin: w.class() + ":" + w.namespace + "/gone"}
			kit.Must(t, w.client.Create(t.Context(), orphan))
		}, "orphan exists, but is not wanted"},
		{"an object of its name", func() {
			kit.Must(t, w.client.Delete(t.Context(), w.configMap("one")))
			again := w.wanted(w.then)[keyOf(w.objects(w.then)["a"][0])]
			again.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: w.class() + ":" + w.namespace + "/a"})
			kit.Must(t, w.client.Create(t.Context(), again.Unstructured))
		}, "one had the UID"},
		{"an object that is gone", func() { kit.Must(t, w.client.Delete(t.Context(), w.configMap("two"))) }, "two is missing"},
		{"a ManagedResource that is gone", func() {
			b := w.managedResource("b")
			kit.Must(t, w.client.Patch(t.Context(), b, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
			kit.Must(t, w.client.Delete(t.Context(), b))
		}, "found 1 ManagedResources, want 2"},
	} {
		damage.do()
		if findings := strings.Join(w.findings(undisturbed), "\n"); !strings.Contains(findings, damage.want) {
			t.Errorf("%s: %q is not in:\n%s", damage.what, damage.want, findings)
		}
	}
}

// TestLossOnTheWayIsNoticed passes forbidden calls to the witness.
func TestLossOnTheWayIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scenario{
		given: state{"a": {configMap("one", "1")}, "b": {}}, then: state{"a": {configMap("one", "2")}, "b": {}}, pruneDelay: soon,
	})
	w.play(w.newLine())
	mr := call{verb: "patch", group: resourcesv1alpha1.GroupName, resource: "managedresources", namespace: w.namespace, name: "a"}
	status := mr
	status.subresource = "status"
	recordedByOther := status
	recordedByOther.writer = "what the other one has recorded"
	object := func(verb, name string) call {
		return call{verb: verb, resource: "configmaps", namespace: w.namespace, name: name}
	}
	apply := func(name string) string {
		return w.fill(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"NAMESPACE","name":"` + name +
			`","annotations":{"resources.gardener.cloud/origin":"NAMESPACE:NAMESPACE/a"}}}`)
	}
	const preconditions = `{"preconditions":{"uid":"u","resourceVersion":"1"}}`
	for _, test := range []struct {
		call call
		body string
		want string
	}{
		{object("patch", "one"), apply("one"), ""},
		{object("patch", "two"), apply("two"), "before it is in the inventory"},
		{object("delete", "one"), preconditions, "deletes a wanted object"},
		{object("delete", "two"), preconditions, ""},
		{object("delete", "two"), `{}`, "deletes without preconditions"},
		{object("deletecollection", ""), preconditions, "deletes more than one object"},
		{status, w.fill(`{"status":{"resources":[{"apiVersion":"v1","kind":"ConfigMap","namespace":"NAMESPACE","name":"one"}]}}`), ""},
		{status, `{"status":{"resources":[]}}`, "forgets ConfigMap"},
		{status, `{"status":{"conditions":[]}}`, ""},
		{mr, `{"metadata":{"finalizers":null}}`, "forgets ConfigMap"},
		{mr, `{"metadata":{"finalizers":["one"]}}`, ""},
		{recordedByOther, `{"status":{"resources":[]}}`, ""},
	} {
		if test.call == recordedByOther {
			other := w.managedResource("b")
			kit.Must(t, w.client.Status().Patch(t.Context(), other, client.RawPatch(types.MergePatchType,
				[]byte(w.fill(`{"status":{"resources":[{"apiVersion":"v1","kind":"ConfigMap","namespace":"NAMESPACE","name":"one"}]}}`)))))
			test.call = status
		}
		w.violations = nil
		w.attest(test.call, []byte(test.body))
		got := strings.Join(w.violations, "; ")
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %q, want %q", test.call, test.body, got, test.want)
		}
	}
}

// TestTooMuchIsNoticed passes NetworkPolicies that allow too much to the witness.
func TestTooMuchIsNoticed(t *testing.T) {
	const pods = `"podSelector":{"matchLabels":{"app":"web"}}`
	for spec, want := range map[string]string{
		`{` + pods + `,"ingress":[{"from":[{` + pods + `}],"ports":[{"port":8080}]}]}`:                   "",
		`{` + pods + `,"egress":[{"to":[{` + pods + `}],"ports":[{"port":8080}]}]}`:                      "",
		`{` + pods + `,"ingress":[{"from":[{` + pods + `}],"ports":[{"port":8081}]}]}`:                   "it allows other ports",
		`{` + pods + `,"ingress":[{"from":[{` + pods + `}],"ports":[{"port":8080,"endPort":9000}]}]}`:    "it allows other ports",
		`{` + pods + `,"ingress":[{"from":[{` + pods + `}]}]}`:                                           "it allows other ports",
		`{` + pods + `,"ingress":[{"ports":[{"port":8080}]}]}`:                                           "it allows everyone",
		`{` + pods + `,"egress":[{"to":[{"podSelector":{}}],"ports":[{"port":8080}]}]}`:                  "it allows all Pods",
		`{` + pods + `,"ingress":[{"from":[{"ipBlock":{"cidr":"0.0.0.0/0"}}],"ports":[{"port":8080}]}]}`: "it allows all Pods",
		`{"podSelector":{},"ingress":[{"from":[{` + pods + `}],"ports":[{"port":8080}]}]}`:               "it selects all Pods",
	} {
		var policy networkingv1.NetworkPolicy
		kit.Must(t, json.Unmarshal([]byte(`{"metadata":{"name":"ingress-to-web-tcp-8080-from-other"},"spec":`+spec+`}`), &policy))
		if got := strings.Join(wider(&policy), "; "); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// TestChoiceOfTheShortRun checks that a short run has each kind of call once, and a full run every enumerated
// site.
func TestChoiceOfTheShortRun(t *testing.T) {
	get, write := call{verb: "get", resource: "secrets", name: "a"}, call{verb: "patch", resource: "configmaps", name: "one"}
	chosen := chosenOf(map[string][]site{
		"small": {{get, 1}},
		"large": {{get, 1}, {write, 1}, {get, 2}, {write, 2}, {call{verb: "watch", resource: "secrets"}, 1}},
	})
	if want := []string{"large/get_secrets_a_1/crash-before", "large/patch_configmaps_one_1/timeout-after"}; !slices.Equal(chosen, want) {
		t.Errorf("the chosen runs are %v, want %v", chosen, want)
	}
	plans := plansFor([]site{{get, 1}, {write, 1}, {get, 3}}, map[string][]string{"patch_configmaps_one_1": {"reset", "crash-after"}}, false)
	if len(plans) != 1 || plans[0].site.call != write || len(plans[0].faults) != 2 {
		t.Errorf("the plans are %v", plans)
	}
	if plans := plansFor([]site{{get, 1}, {write, 1}, {get, 3}}, nil, true); len(plans) != 2 || len(plans[0].faults) != 6 || len(plans[1].faults) != 11 {
		t.Errorf("the plans of a full run are %v", plans)
	}
}
