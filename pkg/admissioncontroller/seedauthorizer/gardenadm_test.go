package seedauthorizer

import "testing"

// TestGardenadm checks what the program that sets up a self-hosted Shoot may do: it creates Shoots with a control plane pool in the namespace of
// its Shoot, for which users need a verb that members of Projects do not have, and writes the status of its Shoot.
func TestGardenadm(t *testing.T) {
	const user = "gardener.cloud:gardenadm:shoot:garden:root"
	for request, want := range map[string]bool{
		"create shoots.core.gardener.cloud garden/":                                   true,
		"mark-self-hosted shoots.core.gardener.cloud garden/root":                     true,
		"patch shoots.core.gardener.cloud garden/root":                                true,
		"patch shoots.core.gardener.cloud/status garden/root":                         true,
		"patch shoots.core.gardener.cloud/status garden/other":                        false,
		"patch shoots.core.gardener.cloud/binding garden/root":                        false,
		"delete shoots.core.gardener.cloud garden/root":                               false,
		"get shoots.core.gardener.cloud garden/other":                                 false,
		"create shoots.core.gardener.cloud garden-dev/":                               false,
		"mark-self-hosted shoots.core.gardener.cloud garden-dev/one":                  false,
		"create secrets garden/":                                                      true,
		"get secrets garden/backup":                                                   false,
		"create secrets garden-dev/":                                                  false,
		"create projects.core.gardener.cloud -":                                       true,
		"get cloudprofiles.core.gardener.cloud local":                                 true,
		"create shoots.core.gardener.cloud/adminkubeconfig garden/root":               false,
		"list seeds.core.gardener.cloud -":                                            false,
		"create clusterrolebindings.rbac.authorization.k8s.io -":                      false,
		"create certificatesigningrequests.certificates.k8s.io -":                     false,
		"modify-spec-kubernetes namespacedcloudprofiles.core.gardener.cloud garden/x": false,
	} {
		if got := ask(t, user, []string{"gardener.cloud:system:shoots"}, request, false); got != want {
			t.Errorf("%s: allowed is %v, want %v", request, got, want)
		}
		if ask(t, user, []string{"system:authenticated"}, request, true) {
			t.Errorf("%s: allowed for a user with this name and without the group", request)
		}
	}
}
