package apiserver

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

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
