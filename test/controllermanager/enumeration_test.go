package controllermanager

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// everyVerb are the verbs that are enumerated.
var everyVerb = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// granted is the complete list of what RBAC grants the gardenlet of a Seed, here of Seed evil. For each resource that the API servers serve, and
// each namespace, it has the verbs for objects of its own Seed, of the other Seed, and for any object. The policies restrict
// writes of any object further: TestGardenletsHarmOnlyTheirSeed.
const granted = `
backupbuckets.core.gardener.cloud: any create,delete,list,patch,watch
backupbuckets.core.gardener.cloud/status: any patch
backupentries.core.gardener.cloud in every namespace: any create,delete,get,list,patch,watch
backupentries.core.gardener.cloud/status in every namespace: any patch
bastions.operations.gardener.cloud in every namespace: any list,patch,watch
bastions.operations.gardener.cloud/status in every namespace: any patch
certificatesigningrequests.certificates.k8s.io: any create,get
cloudprofiles.core.gardener.cloud: any get,list,watch
configmaps in garden: own list,watch
configmaps in garden-dev: own get,list,patch,watch; any create
configmaps in gardener-system-public: own get
configmaps in kube-system: own get,list,watch
controllerdeployments.core.gardener.cloud: any list,watch
controllerinstallations.core.gardener.cloud: any list,patch,watch
controllerinstallations.core.gardener.cloud/status: any patch
controllerregistrations.core.gardener.cloud: any get,list,watch
credentialsbindings.security.gardener.cloud in garden-dev: own list,watch
customresourcedefinitions.apiextensions.k8s.io: any get,list,watch
events.events.k8s.io in every namespace: any create,patch
exposureclasses.core.gardener.cloud: any get,list,watch
gardenlets.seedmanagement.gardener.cloud in every namespace: any list,patch,watch
gardenlets.seedmanagement.gardener.cloud/status in every namespace: any patch
internalsecrets.core.gardener.cloud in garden-dev: own get,list,patch,watch; any create
leases.coordination.k8s.io in gardener-system-seed-lease: own get,update; any create
managedseeds.seedmanagement.gardener.cloud in every namespace: any list,patch,watch
managedseeds.seedmanagement.gardener.cloud/status in every namespace: any patch
namespacedcloudprofiles.core.gardener.cloud in every namespace: any list,watch
namespaces: any list,watch
secrets in garden: own delete,list,patch,watch; any create
secrets in garden-dev: own list,watch
secrets in seed-evil: any create,delete,get,list,patch,update,watch
seeds.core.gardener.cloud: own patch,update; any create,delete,get,list,watch
seeds.core.gardener.cloud/status: own patch
serviceaccounts in seed-evil: any create,delete,get,list,patch,update,watch
serviceaccounts/token in seed-evil: any create
shoots.core.gardener.cloud in every namespace: any get,list,patch,watch
shoots.core.gardener.cloud/status in every namespace: any patch
shootstates.core.gardener.cloud in garden-dev: own delete,get,list,patch,watch; any create
tokenreviews.authentication.k8s.io: any create
workloadidentities.security.gardener.cloud in garden-dev: own list,watch
workloadidentities.security.gardener.cloud/token in garden-dev: own create
`

// TestRightsOfGardenlets enumerates the rights of the gardenlet of a Seed, as "kubectl auth can-i" would, and compares them with
// the complete list.
func TestRightsOfGardenlets(t *testing.T) {
	g := newGardenlets(t)
	for seed, other := range map[string]string{evil: seedName, seedName: evil} {
		kit.EventuallyTrue(t, "the rights by name are granted", func() bool {
			return g.mayList(seed, "garden", "backup") && listed(g, g.as(seed), &corev1.SecretList{}, metav1.ObjectMeta{Namespace: "seed-" + seed}) == nil && g.mayList(seed, project, "secret") && g.mayList(seed, "garden", "pull") &&
				g.mayList(seed, "garden", "generated-bucket-bucket")
		})
		got, want := g.enumerate(seed, other), strings.Split(strings.ReplaceAll(strings.TrimSpace(granted), "seed-"+evil, "seed-"+seed), "\n")
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("the gardenlet of Seed %s may also: %s", seed, line)
			}
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("the gardenlet of Seed %s may not: %s", seed, line)
			}
		}
	}
}

func (g *gardenlets) mayList(seed, namespace, name string) bool {
	return listed(g, g.as(seed), &corev1.SecretList{}, in(namespace, name, seed)) == nil
}

// enumerate returns the rights of a Seed's gardenlet, sorted.
func (g *gardenlets) enumerate(seed, other string) []string {
	g.Helper()
	namespaces := []string{"garden", project, constants.SystemPublicNamespace, constants.SystemSeedLeaseNamespace, "kube-system", "seed-" + seed, "seed-" + other}
	rules := map[string][]authorizationv1.ResourceRule{}
	for _, namespace := range namespaces {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		kit.Must(g, g.as(seed).Create(g.Context(), review))
		if review.Status.Incomplete {
			g.Fatalf("the rules in namespace %s are incomplete: %s", namespace, review.Status.EvaluationError)
		}
		rules[namespace] = review.Status.ResourceRules
	}
	shared := append(slices.Clone(sharedNames), "generated-bucket-"+g.uidOf(seed))
	var lines []string
	for resource, namespaced := range g.resources() {
		in := map[string]string{}
		for _, namespace := range namespaces {
			in[namespace] = describeRights(rules[namespace], resource, seed, other, shared)
		}
		values := slices.Compact(slices.Sorted(maps.Values(in)))
		switch name := nameOf(resource); {
		case len(values) == 1 && values[0] == "":
		case !namespaced:
			lines = append(lines, name+": "+in["garden"])
		case len(values) == 1:
			lines = append(lines, name+" in every namespace: "+values[0])
		default:
			for _, namespace := range namespaces {
				if in[namespace] != "" {
					lines = append(lines, name+" in "+namespace+": "+in[namespace])
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// resources returns all resources that the API servers serve, and whether they are namespaced. It leaves out reviews of the own
// rights, which everyone may create.
func (g *gardenlets) resources() map[schema.GroupResource]bool {
	g.Helper()
	discovered, err := discovery.NewDiscoveryClientForConfig(g.plane.Config())
	kit.Must(g, err)
	_, lists, err := discovered.ServerGroupsAndResources()
	kit.Must(g, err)
	found := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		kit.Must(g, err)
		for _, resource := range list.APIResources {
			if !strings.HasPrefix(resource.Name, "selfsubject") {
				found[schema.GroupResource{Group: version.Group, Resource: resource.Name}] = resource.Namespaced
			}
		}
	}
	return found
}

// nameOf returns the resource with its group, and its subresource at the end.
func nameOf(resource schema.GroupResource) string {
	main, sub, has := strings.Cut(resource.Resource, "/")
	if resource.Group != "" {
		main += "." + resource.Group
	}
	if has {
		main += "/" + sub
	}
	return main
}

// describeRights returns the verbs for objects of the own Seed, of the other Seed, and for any object.
func describeRights(rules []authorizationv1.ResourceRule, resource schema.GroupResource, seed, other string, shared []string) string {
	verbs := map[string][]string{}
	for _, verb := range everyVerb {
		for _, rule := range rules {
			if !matches(rule.Verbs, verb) || !matches(rule.APIGroups, resource.Group) || !matches(rule.Resources, resource.Resource) {
				continue
			}
			if len(rule.ResourceNames) == 0 {
				verbs["any"] = append(verbs["any"], verb)
			}
			for _, name := range rule.ResourceNames {
				of := "own"
				both := slices.Contains(shared, resource.Resource+"/"+name) // a name that only this resource may have
				if !both && (strings.Contains(name, other) || !strings.Contains(name, seed) && !slices.Contains(shared, name)) {
					of = "foreign " + name
				}
				verbs[of] = append(verbs[of], verb)
			}
		}
	}
	var parts []string
	for _, of := range slices.Sorted(maps.Keys(verbs)) {
		unique := slices.Compact(slices.Sorted(slices.Values(verbs[of])))
		if of != "any" {
			unique = slices.DeleteFunc(unique, func(verb string) bool { return slices.Contains(verbs["any"], verb) })
		}
		if len(unique) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", of, strings.Join(unique, ",")))
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "; ")
}

// sharedNames are the objects that both gardenlets use: those of the garden, and those that both Seeds and both Shoots name.
var sharedNames = []string{
	"gardener-info", "kube-root-ca.crt", constants.ClusterIdentityName, "kube-system", "internal-domain",
	"namespaces/garden", "credentialsbindings/local", "audit-policy", "authentication", "authorization", "authorization-webhook", "image-policy",
}

func matches(granted []string, wanted string) bool {
	return slices.Contains(granted, wanted) || slices.Contains(granted, "*")
}
