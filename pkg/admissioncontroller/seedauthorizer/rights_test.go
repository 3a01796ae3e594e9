package seedauthorizer_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// rolesOf returns the rules by namespace and name of the Roles and ClusterRoles of gardenlet's chart for the Seed one.
func rolesOf(t *testing.T, values map[string]any) map[string][]rbacv1.PolicyRule {
	t.Helper()
	loaded, err := generate.LoadFrom(filepath.Join("..", "..", "..", "charts", "gardenlet"))
	if err != nil {
		t.Fatal(err)
	}
	values["mode"], values["seeds"] = "garden", []any{map[string]any{"name": "one"}}
	files, err := generate.Render(loaded, "garden", values)
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(files["rbac-garden.yaml"], "\n---\n") {
		role := &rbacv1.Role{}
		if err := yaml.Unmarshal([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(role.Kind, "Role") {
			roles[role.Namespace+"/"+role.Name] = role.Rules
		}
	}
	return roles
}

// TestAuthorizerCoversTheChart checks that a gardenlet loses no right that it uses when RBAC is switched off: for each right of the chart,
// the authorizer permits the request for an object of the own Seed, with the selectors of gardenlet's caches.
func TestAuthorizerCoversTheChart(t *testing.T) {
	t.Parallel()
	paths := paths()
	for role, rules := range rolesOf(t, map[string]any{}) {
		namespace, name, _ := strings.Cut(role, "/")
		if name == bootstrapper {
			continue
		}
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, object := range namesFor(rule, resource) {
						spec := request(namespace, name, rule.APIGroups[0], resource, verb, object)
						decision, err := seedauthorizer.Decide(t.Context(), paths, present, spec)
						if err != nil || !decision.Allowed {
							t.Errorf("Role %s: %s %s %q: %s (%v)", role, verb, resource, object, decision.Reason, err)
						}
					}
				}
			}
		}
	}
}

// TestRBACIsSwitchedOff checks that with the authorizer, the chart grants only what bootstrap tokens need.
func TestRBACIsSwitchedOff(t *testing.T) {
	t.Parallel()
	roles := rolesOf(t, map[string]any{"seedAuthorizer": map[string]any{"enabled": true}})
	if got := slices.Sorted(maps.Keys(roles)); !slices.Equal(got, []string{"/" + bootstrapper}) {
		t.Errorf("the chart has the roles %q", got)
	}
}

const bootstrapper = "gardener.cloud:system:seed-bootstrapper"

func present(context.Context, schema.GroupResource, graph.Vertex) (bool, error) { return false, nil }

// own are the names of objects of Seed one by resource.
var own = map[string]string{
	"cloudprofiles": "profile", "controllerdeployments": "deployment", "controllerregistrations": "registration", "namespacedcloudprofiles": "namespaced",
	"exposureclasses": "class", "bastions": "bastion", "gardenlets": "one", "managedseeds": "managed",
	"namespaces": "garden-dev", "seeds": "one", "backupbuckets": "bucket", "backupentries": "entry", "controllerinstallations": "installation", "shoots": "shoot",
	"secrets": "any", "serviceaccounts": "any", "leases": "one", "certificatesigningrequests": "request",
}

func namesFor(rule rbacv1.PolicyRule, resource string) []string {
	if len(rule.ResourceNames) > 0 {
		return rule.ResourceNames
	}
	main, _, _ := strings.Cut(resource, "/")
	return []string{own[main]}
}

// request returns the request that a gardenlet sends with a right.
func request(namespace, role, group, resource, verb, name string) *authorizationv1.SubjectAccessReviewSpec {
	attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Namespace: namespace, Name: name}
	attributes.Resource, attributes.Subresource, _ = strings.Cut(resource, "/")
	if namespace == "" {
		attributes.Namespace = map[string]string{
			"shoots": "garden-dev", "backupentries": "garden-dev", "bastions": "garden-dev", "namespacedcloudprofiles": "garden-dev",
			"gardenlets": "garden", "managedseeds": "garden",
		}[attributes.Resource]
	}
	if role == "gardener.cloud:system:seed-namespace" {
		attributes.Namespace = "seed-one"
	}
	if verb == "list" || verb == "watch" {
		switch attributes.Resource {
		case "seeds", "shoots", "managedseeds", "backupentries":
			attributes.Name, attributes.LabelSelector = "", &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				{Key: "name.seed.gardener.cloud/one", Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
			}}
		case "controllerinstallations":
			attributes.Name, attributes.FieldSelector = "", fieldSelector("spec.seedRef.name")
		case "backupbuckets", "bastions":
			attributes.Name, attributes.FieldSelector = "", fieldSelector("spec.seedName")
		case "gardenlets":
			attributes.Name, attributes.FieldSelector = "", fieldSelector("metadata.name")
		case "controllerregistrations":
			attributes.Name = ""
		}
	}
	return &authorizationv1.SubjectAccessReviewSpec{
		User: "gardener.cloud:system:seed:one", Groups: []string{"gardener.cloud:system:seeds"}, ResourceAttributes: attributes,
	}
}

func fieldSelector(key string) *authorizationv1.FieldSelectorAttributes {
	return &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
		{Key: key, Operator: metav1.FieldSelectorOpIn, Values: []string{"one"}},
	}}
}

// paths returns the graph of Seed one with a Shoot.
func paths() *graph.Graph {
	g := graph.New()
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "shoot"}}
	shoot.Spec.SeedName, shoot.Spec.CloudProfileName = ptr.To("one"), ptr.To("profile")
	class := "class"
	shoot.Spec.ExposureClassName = &class
	shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "namespaced"}
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "project"}}
	project.Spec.Namespace = ptr.To("garden-dev")
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}}
	bucket.Spec.SeedName = ptr.To("one")
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "entry"}}
	entry.Spec.SeedName = ptr.To("one")
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "bastion"}}
	bastion.Spec.SeedName = ptr.To("one")
	managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "managed"}}
	managed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "host"}
	host := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "host"}}
	host.Spec.SeedName = ptr.To("one")
	watcher := graph.NewWatcher(g, clock.RealClock{})
	for _, row := range graph.Table() {
		switch row.Kind {
		case graph.Shoot:
			watcher.Observe(row, shoot, false)
			watcher.Observe(row, host, false)
		case graph.Project:
			watcher.Observe(row, project, false)
		case graph.BackupBucket:
			watcher.Observe(row, bucket, false)
		case graph.BackupEntry:
			watcher.Observe(row, entry, false)
		case graph.Bastion:
			watcher.Observe(row, bastion, false)
		case graph.Gardenlet:
			watcher.Observe(row, &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "one"}}, false)
		case graph.ManagedSeed:
			watcher.Observe(row, managed, false)
		case graph.Seed:
			watcher.Observe(row, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, false)
		default:
		}
	}
	seed, installation := graph.SeedVertex("one"), graph.Vertex{Kind: graph.ControllerInstallation, Name: "installation"}
	g.Set(installation, []graph.Edge{
		{From: installation, To: seed, Access: graph.Own}, {From: graph.Vertex{Kind: graph.ControllerDeployment, Name: "deployment"}, To: installation},
	})
	request := graph.Vertex{Kind: graph.CertificateSigningRequest, Name: "request"}
	g.Set(request, []graph.Edge{{From: request, To: seed}})
	return g
}
