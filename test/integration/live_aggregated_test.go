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

// TestLiveAggregatedAPIDown takes the API of a kind away, as an extension API server that is down does, while one object of
// the kind leaves the manifests. None is taken to be deleted: nothing leaves the inventory, the condition says what is wrong,
// also after a restart, and all goes on when the API is back.
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

	must(t, f.client.Delete(f.ctx, api)) // kube-apiserver makes it anew as it was
	f.eventuallySucceeded("set")
	if now := f.uidsOf(first, second); now[0] != uids[0] || now[1] != "" {
		t.Errorf("of %v there are %v", uids, now)
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

// discoverable tells whether the API server answers for a group and version.
func (f *fixture) discoverable(groupVersion string) bool {
	f.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(groupVersion)
	list.SetKind("TwinList")
	err := f.client.List(f.ctx, list)
	return err == nil
}

// takeDown has a service that does not exist answer for an API.
func (f *fixture) takeDown(api *unstructured.Unstructured) {
	f.Helper()
	patch := `{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}},"spec":{"service":{"namespace":"default","name":"no-such"},"insecureSkipTLSVerify":true}}`
	must(f, f.client.Patch(f.ctx, api, client.RawPatch(types.MergePatchType, []byte(patch))))
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(fmt.Sprint(at(api, "spec", "group"), "/v1"))
	list.SetKind("TwinList")
	f.eventually("the API is down", func() bool { return apierrors.IsServiceUnavailable(f.client.List(f.ctx, list)) })
}

// wantDown waits until the condition says what cannot be done, and checks that the inventory names all three objects.
func (f *fixture) wantDown(says ...string) {
	f.Helper()
	f.eventually("the condition tells", func() bool {
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
