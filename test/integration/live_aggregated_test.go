package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestLiveAggregatedAPIDown makes the API of a kind unavailable, like an extension API server that is down, while one
// object of the kind leaves the manifests. No object is considered deleted: the inventory keeps all of them, and the
// condition names the problem, also after a restart. When the API is back, everything continues.
func TestLiveAggregatedAPIDown(t *testing.T) {
	f := newFixture(t)
	p := f.start(onlyEvents)
	definition, first := f.ofGroup("")
	second := strings.Replace(first, "name: x", "name: second", 1)
	f.createObject(definition, "somebody")
	api := f.apiService(strings.Fields(first)[1])
	f.manage("set", first, second, f.configMap("one", "1"))
	f.eventuallySucceeded("set")
	uids := f.uidsOf(first, second)

	f.takeDown(api)
	f.secret("set", "objects.yaml", first+"---\n"+f.configMap("one", "2"))
	f.wantDown("Could not delete (1)", f.namespace+"/second")
	f.wantConfigMap("one", "2")
	p.Stop()
	p = f.start(onlyEvents)
	larger := strings.Replace(first, "size: 1", "size: 2", 1)
	f.secret("set", "objects.yaml", larger+"---\n"+f.configMap("one", "3"))
	f.wantDown("Could not apply (1)", f.namespace+".example.org")
	f.wantConfigMap("one", "3")

	must(t, f.client.Delete(f.ctx, api)) // kube-apiserver recreates it unchanged
	f.eventuallySucceeded("set")
	if now := f.uidsOf(first, second); now[0] != uids[0] || now[1] != "" {
		t.Errorf("the UIDs were %v and are %v", uids, now)
	}
	if size := at(f.object(first), "spec", "size"); size != int64(2) {
		t.Errorf("the size is %v", size)
	}
	f.putBack(first)
	p.Stop()
}

// apiService waits for the APIService of a group and version.
func (f *fixture) apiService(groupVersion string) *unstructured.Unstructured {
	f.Helper()
	group, version, _ := strings.Cut(groupVersion, "/")
	api := f.parse("apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: " + version + "." + group + "}\n")
	f.eventually("the kind is served", func() bool {
		return f.client.Get(f.ctx, client.ObjectKeyFromObject(api), api) == nil && f.discoverable(groupVersion)
	})
	return api
}

// discoverable reports whether discovery works for a group and version.
func (f *fixture) discoverable(groupVersion string) bool {
	f.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(groupVersion)
	list.SetKind("TwinList")
	err := f.client.List(f.ctx, list)
	return err == nil
}

// takeDown routes an API to a service that does not exist.
func (f *fixture) takeDown(api *unstructured.Unstructured) {
	f.Helper()
	patch := `{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}},"spec":{"service":{"namespace":"default","name":"no-such"},"insecureSkipTLSVerify":true}}`
	must(f, f.client.Patch(f.ctx, api, client.RawPatch(types.MergePatchType, []byte(patch))))
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(fmt.Sprint(at(api, "spec", "group"), "/v1"))
	list.SetKind("TwinList")
	f.eventually("the API is down", func() bool { return apierrors.IsServiceUnavailable(f.client.List(f.ctx, list)) })
}

// wantDown waits until the condition has the given texts, and checks that the inventory names all three objects.
func (f *fixture) wantDown(says ...string) {
	f.Helper()
	f.eventually("the condition reports the outage", func() bool {
		condition := applied(f.read("set"))
		return condition.Status == resourcesv1alpha1.ConditionFalse && !slices.ContainsFunc(says, func(part string) bool {
			return !strings.Contains(condition.Message, part)
		})
	})
	mr := f.read("set")
	if names := entries(mr); len(names) != 3 {
		f.Errorf("the inventory names %v", names)
	}
	f.Logf("%s: %s", applied(mr).Reason, applied(mr).Message)
}
