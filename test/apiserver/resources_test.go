package apiserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestResourcesAreServed compares the resources that clients discover with the list of resources.
func TestResourcesAreServed(t *testing.T) {
	t.Parallel()
	asked, err := discovery.NewDiscoveryClientForConfig(shared.Get(t).Config())
	kit.Must(t, err)
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	wanted := map[string][]string{}
	for _, resource := range served.Resources() {
		version := resource.GroupVersion().String()
		var all string
		if resource.InAll {
			all = "all"
		}
		wanted[version] = append(wanted[version], describe(resource.Name, resource.Namespaced, resource.ShortNames, all, verbs))
		for _, subresource := range resource.Subresources {
			verbs := []string{"get", "patch", "update"}
			if slices.Contains([]string{"adminkubeconfig", "viewerkubeconfig", "token"}, subresource) {
				verbs = []string{"create"}
			}
			wanted[version] = append(wanted[version], describe(resource.Name+"/"+subresource, resource.Namespaced, nil, "", verbs))
		}
	}
	for version, want := range wanted {
		found, err := asked.ServerResourcesForGroupVersion(version)
		kit.Must(t, err)
		var got []string
		for _, resource := range found.APIResources {
			verbs := slices.Sorted(slices.Values(resource.Verbs))
			got = append(got, describe(resource.Name, resource.Namespaced, resource.ShortNames, strings.Join(resource.Categories, ","), verbs))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s serves\n%s\nbut lists\n%s", version, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func describe(name string, namespaced bool, short []string, categories string, verbs []string) string {
	scope := "cluster"
	if namespaced {
		scope = "namespace"
	}
	short = slices.Sorted(slices.Values(short))
	return strings.Join([]string{name, scope, strings.Join(short, ","), categories, strings.Join(verbs, ",")}, " ")
}

// TestLists lists every kind in every version: whole, page by page, with selectors, from the watch cache, as tables and as
// metadata. An empty collection is a list without items, also in tables.
func TestLists(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, one := range []string{"listed-a", "listed-b"} {
		deployment := exampleOf(t, "ControllerDeployment", "", one, &gardencorev1.ControllerDeployment{})
		deployment.Labels = map[string]string{"listed": "yes"}
		kit.Must(t, c.Create(t.Context(), deployment))
	}
	raw, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(shared.Get(t).Config()))
	kit.Must(t, err)
	const table, metadata = ";as=Table;v=v1;g=meta.k8s.io", ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	for _, resource := range served.Resources() {
		path := "/apis/" + resource.GroupVersion().String() + "/" + resource.Name
		for _, test := range []struct{ query, as, items string }{
			{"", "", "items"},
			{"limit=1", "", "items"},
			{"resourceVersion=0", "", "items"},
			{"labelSelector=listed%3Dyes", "", "items"},
			{"fieldSelector=metadata.name%3Dlisted-a", "", "items"},
			{"labelSelector=listed%3Dno", "", "items"},
			{"", table, "rows"},
			{"labelSelector=listed%3Dno", table, "rows"},
			{"", metadata, "items"},
		} {
			found := map[string]any{}
			body, err := raw.Get().AbsPath(path).SetHeader("Accept", "application/json"+test.as).
				RequestURI(path + "?" + test.query).DoRaw(t.Context())
			if err == nil {
				err = json.Unmarshal(body, &found)
			}
			items, is := found[test.items].([]any)
			if empty := test.as == metadata && found[test.items] == nil; err != nil || !is && !empty { // the library encodes no items as null
				t.Errorf("%s?%s as %q: %s are %v, error %v", path, test.query, test.as, test.items, found[test.items], err)
				continue
			}
			want := map[string]int{"labelSelector=listed%3Dyes": 2, "fieldSelector=metadata.name%3Dlisted-a": 1, "limit=1": 1}
			if resource.Kind == "ControllerDeployment" && want[test.query] != 0 && len(items) != want[test.query] {
				t.Errorf("%s?%s has %d %s, want %d", path, test.query, len(items), test.items, want[test.query])
			}
		}
	}
	kit.Must(t, c.DeleteAllOf(t.Context(), &gardencorev1beta1.ControllerDeployment{}, client.MatchingLabels{"listed": "yes"}))
	list := &gardencorev1beta1.ControllerDeploymentList{}
	kit.Must(t, c.List(t.Context(), list, client.MatchingLabels{"listed": "yes"}))
	if len(list.Items) > 0 {
		t.Errorf("%d ControllerDeployments are left", len(list.Items))
	}
}
