package seedauthorizer

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

var update = flag.Bool("update", false, "write the table of the rights of gardenlets")

// world returns a garden with Seeds that have the same objects, named after the Seed. Both Shoots have one CloudProfile.
func world(seeds ...string) *graph.Graph {
	g := graph.New()
	watcher := graph.NewWatcher(g, clock.RealClock{})
	rows := map[graph.Kind]graph.Row{}
	for _, row := range graph.Table() {
		rows[row.Kind] = row
	}
	for _, seed := range seeds {
		for kind, object := range objectsOf(seed) {
			watcher.Observe(rows[kind], object, false)
		}
	}
	return g
}

func objectsOf(seed string) map[graph.Kind]client.Object {
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + seed}
	}
	secret := func(namespace, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name + "-" + seed}
	}
	of := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seed}}
	of.Spec.Backup = &corev1beta1.Backup{CredentialsRef: ptr.To(secret("garden", "backup"))}
	shoot := &corev1beta1.Shoot{ObjectMeta: in("garden-dev", "shoot")}
	shoot.Spec.SeedName, shoot.Spec.CredentialsBindingName = &seed, ptr.To("binding-"+seed)
	shoot.Spec.SecretBindingName, shoot.Spec.ExposureClassName = ptr.To("old-"+seed), ptr.To("class-"+seed)
	shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "profile-" + seed}
	shoot.Spec.CloudProfileName = ptr.To("profile-" + seed)
	for _, kind := range []string{"Secret", "ConfigMap", "WorkloadIdentity"} {
		shoot.Spec.Resources = append(shoot.Spec.Resources, corev1beta1.NamedResourceReference{
			Name: kind, ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, Name: "named-" + seed},
		})
	}
	bucket := &corev1beta1.BackupBucket{ObjectMeta: in("", "bucket")}
	bucket.Spec.SeedName = &seed
	entry := &corev1beta1.BackupEntry{ObjectMeta: in("garden-dev", "entry")}
	entry.Spec.SeedName, entry.Spec.BucketName = &seed, bucket.Name
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: in("garden-dev", "bastion")}
	bastion.Spec.SeedName = &seed
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: in("", "installation")}
	installation.Spec.SeedRef = &corev1.ObjectReference{Name: seed}
	installation.Spec.RegistrationRef.Name, installation.Spec.DeploymentRef = "registration-"+seed, &corev1.ObjectReference{Name: "deployment-" + seed}
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: in("", "deployment")}
	binding := &securityv1alpha1.CredentialsBinding{ObjectMeta: in("garden-dev", "binding"), CredentialsRef: secret("garden-dev", "cloud")}
	old := &corev1beta1.SecretBinding{ObjectMeta: in("garden-dev", "old"), SecretRef: corev1.SecretReference{Namespace: "garden-dev", Name: "cloud-" + seed}}
	managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: in("garden", "managed")}
	managed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "parent-" + seed}
	project := &corev1beta1.Project{ObjectMeta: in("", "project")}
	project.Spec.Namespace = ptr.To("garden-dev")
	return map[graph.Kind]client.Object{
		graph.Seed: of, graph.Shoot: shoot, graph.BackupBucket: bucket, graph.BackupEntry: entry, graph.Bastion: bastion,
		graph.ControllerInstallation: installation, graph.ControllerDeployment: deployment, graph.CredentialsBinding: binding, graph.SecretBinding: old,
		graph.ManagedSeed: managed, graph.Project: project, graph.Gardenlet: &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: seed}},
	}
}

// subjects are objects that belong to a Seed (%s), as <resource> <namespace>/<name>, and what they are.
var subjects = []struct{ resource, object, what string }{
	{"backupbuckets.core.gardener.cloud", "bucket-%s", "of the Seed"},
	{"backupbuckets/status.core.gardener.cloud", "bucket-%s", "of the Seed"},
	{"backupentries.core.gardener.cloud", "garden-dev/entry-%s", "of the Seed"},
	{"backupentries/status.core.gardener.cloud", "garden-dev/entry-%s", "of the Seed"},
	{"bastions.operations.gardener.cloud", "garden-dev/bastion-%s", "of a Shoot"},
	{"bastions/status.operations.gardener.cloud", "garden-dev/bastion-%s", "of a Shoot"},
	{"certificatesigningrequests.certificates.k8s.io", "request-%s", "of anybody"},
	{"certificatesigningrequests/approval.certificates.k8s.io", "request-%s", "of anybody"},
	{"cloudprofiles.core.gardener.cloud", "profile-%s", "of a Shoot"},
	{"clusterrolebindings.rbac.authorization.k8s.io", "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-%s", "of the bootstrap"},
	{"clusterroles.rbac.authorization.k8s.io", "gardener.cloud:system:seed-%s", "of anybody"},
	{"configmaps", "garden-dev/shoot-%s.ca-cluster", "of a Shoot"},
	{"configmaps", "garden-dev/named-%s", "that a Shoot names"},
	{"controllerdeployments.core.gardener.cloud", "deployment-%s", "of an extension"},
	{"controllerinstallations.core.gardener.cloud", "installation-%s", "of an extension"},
	{"controllerinstallations/status.core.gardener.cloud", "installation-%s", "of an extension"},
	{"controllerregistrations.core.gardener.cloud", "registration-%s", "of an extension"},
	{"credentialsbindings.security.gardener.cloud", "garden-dev/binding-%s", "of a Shoot"},
	{"events.events.k8s.io", "garden-dev/event-%s", "of anybody"},
	{"exposureclasses.core.gardener.cloud", "class-%s", "of a Shoot"},
	{"gardenlets.seedmanagement.gardener.cloud", "garden/%s", "of the Seed"},
	{"internalsecrets.core.gardener.cloud", "garden-dev/shoot-%s.ca-client", "of a Shoot"},
	{"leases.coordination.k8s.io", "gardener-system-seed-lease/%s", "of the Seed"},
	{"managedseeds.seedmanagement.gardener.cloud", "garden/managed-%s", "of a Shoot of another Seed"},
	{"namespacedcloudprofiles.core.gardener.cloud", "garden-dev/profile-%s", "of a Shoot"},
	{"namespaces", "seed-%s", "of the Seed"},
	{"nodes", "node-%s", "of anybody"},
	{"secretbindings.core.gardener.cloud", "garden-dev/old-%s", "of a Shoot"},
	{"secrets", "garden/backup-%s", "with the credentials of backups"},
	{"secrets", "garden-dev/shoot-%s.monitoring", "of a Shoot"},
	{"secrets", "garden-dev/named-%s", "that a Shoot names"},
	{"secrets", "garden-dev/cloud-%s", "with the credentials of a Shoot"},
	{"secrets", "seed-%s/any", "in the namespace of the Seed"},
	{"seeds.core.gardener.cloud", "%s", "itself"},
	{"seeds/status.core.gardener.cloud", "%s", "itself"},
	{"serviceaccounts", "seed-%s/extension-x", "of an extension"},
	{"serviceaccounts/token", "seed-%s/extension-x", "of an extension"},
	{"shoots.core.gardener.cloud", "garden-dev/shoot-%s", "on the Seed"},
	{"shoots/adminkubeconfig.core.gardener.cloud", "garden-dev/shoot-%s", "on the Seed"},
	{"shoots/binding.core.gardener.cloud", "garden-dev/shoot-%s", "on the Seed"},
	{"shoots/status.core.gardener.cloud", "garden-dev/shoot-%s", "on the Seed"},
	{"shootstates.core.gardener.cloud", "garden-dev/shoot-%s", "of a Shoot"},
	{"workloadidentities.security.gardener.cloud", "garden-dev/named-%s", "that a Shoot names"},
	{"workloadidentities/token.security.gardener.cloud", "garden-dev/named-%s", "that a Shoot names"},
}

// may returns the verbs that the gardenlet of a Seed may use for an object that exists.
func may(t *testing.T, paths Paths, seed, resource, object string) string {
	t.Helper()
	attributes := authorizationv1.ResourceAttributes{Name: object}
	if namespace, name, found := strings.Cut(object, "/"); found {
		attributes.Namespace, attributes.Name = namespace, name
	}
	attributes.Resource, attributes.Group, _ = strings.Cut(resource, ".")
	attributes.Resource, attributes.Subresource, _ = strings.Cut(attributes.Resource, "/")
	exists := func(context.Context, schema.GroupResource, graph.Vertex) (bool, error) { return false, nil }
	var verbs []string
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "escalate", "bind", "impersonate", "approve"} {
		one := attributes
		one.Verb = verb
		if verb == "deletecollection" {
			one.Name = ""
		}
		decision, err := Decide(t.Context(), paths, exists, &authorizationv1.SubjectAccessReviewSpec{
			User: "gardener.cloud:system:seed:" + seed, Groups: []string{"gardener.cloud:system:seeds", "system:authenticated"}, ResourceAttributes: &one,
		})
		if err != nil {
			t.Fatal(err)
		}
		if decision.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return strings.Join(verbs, " ")
}

// publicVerbs are what gardenlets may do with objects of any Seed: webhooks check the objects that they create. No object can be created with
// the subresource status.
var publicVerbs = map[string]string{
	"backupbuckets.core.gardener.cloud":              "create",
	"backupbuckets/status.core.gardener.cloud":       "create",
	"backupentries.core.gardener.cloud":              "create",
	"backupentries/status.core.gardener.cloud":       "create",
	"bastions.operations.gardener.cloud":             "create",
	"bastions/status.operations.gardener.cloud":      "create",
	"certificatesigningrequests.certificates.k8s.io": "create",
	"clusterrolebindings.rbac.authorization.k8s.io":  "create",
	"configmaps": "create",
	"controllerregistrations.core.gardener.cloud": "get list watch",
	"events.events.k8s.io":                        "create patch",
	"gardenlets.seedmanagement.gardener.cloud":    "create",
	"internalsecrets.core.gardener.cloud":         "create",
	"leases.coordination.k8s.io":                  "create",
	"secrets":                                     "create",
	"seeds.core.gardener.cloud":                   "create",
	"seeds/status.core.gardener.cloud":            "create",
	"serviceaccounts":                             "create",
	"shootstates.core.gardener.cloud":             "create",
}

// TestIsolationOfSeeds enumerates what the gardenlets of two Seeds may do with own objects, with those of the other Seed, and with objects
// that belong to no Seed. The first is in testdata; the others have only what publicVerbs lists.
func TestIsolationOfSeeds(t *testing.T) {
	t.Parallel()
	paths := world("a", "b")
	var table strings.Builder
	for _, subject := range subjects {
		own := map[string]string{}
		for _, seeds := range [][3]string{{"a", "b", "none"}, {"b", "a", "none"}} {
			own[seeds[0]] = may(t, paths, seeds[0], subject.resource, fmt.Sprintf(subject.object, seeds[0]))
			for _, other := range seeds[1:] {
				object := fmt.Sprintf(subject.object, other)
				if got := may(t, paths, seeds[0], subject.resource, object); got != publicVerbs[subject.resource] {
					t.Errorf("the gardenlet of Seed %s may %q %s %s, want %q", seeds[0], got, subject.resource, object, publicVerbs[subject.resource])
				}
			}
		}
		if own["a"] != own["b"] {
			t.Errorf("%s %s: the gardenlets may %q and %q", subject.resource, subject.object, own["a"], own["b"])
		}
		fmt.Fprintf(&table, "%s %s (%s): %s\n", subject.resource, strings.ReplaceAll(subject.object, "%s", "<seed>"), subject.what, own["a"])
	}
	file := filepath.Join("testdata", "own.txt")
	if *update {
		if err := os.WriteFile(file, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || table.String() != string(want) {
		t.Errorf("the table differs from %s (%v): use -update\n%s", file, err, table.String())
	}
	for _, resource := range slices.SortedFunc(maps.Keys(seedRules), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		text := resource.String()
		if !slices.ContainsFunc(subjects, func(subject struct{ resource, object, what string }) bool { return subject.resource == text }) && !unrelated[text] {
			t.Errorf("the table has no object of %s", text)
		}
	}
}

// unrelated are resources without objects that belong to one Seed. The Project is that of both Shoots.
var unrelated = map[string]bool{"events": true, "projects.core.gardener.cloud": true, "tokenreviews.authentication.k8s.io": true}

// TestReasonsNameThePath checks that a decision explains itself.
func TestReasonsNameThePath(t *testing.T) {
	t.Parallel()
	paths := world("a", "b")
	for name, want := range map[string]string{
		"named-a": "Secret garden-dev/named-a is needed by Seed a: Secret garden-dev/named-a -> Shoot garden-dev/shoot-a -> Seed a",
		"cloud-a": "Secret garden-dev/cloud-a is needed by Seed a: Secret garden-dev/cloud-a -> ",
		"named-b": "Secret garden-dev/named-b is not needed by Seed a",
	} {
		decision, err := Decide(t.Context(), paths, nil, &authorizationv1.SubjectAccessReviewSpec{
			User: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "garden-dev", Name: name},
		})
		if err != nil || !strings.HasPrefix(decision.Reason, want) {
			t.Errorf("%s: %q (%v), want %q", name, decision.Reason, err, want)
		}
	}
}
