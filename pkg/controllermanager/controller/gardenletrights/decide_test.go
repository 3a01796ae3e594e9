package gardenletrights

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// everything returns a Shoot with all fields that name objects of its namespace, and some other fields.
func everything() corev1beta1.Shoot {
	reference := func(apiVersion, kind, name string) autoscalingv1.CrossVersionObjectReference {
		return autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
	shoot := corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	spec := &shoot.Spec
	spec.SeedName = ptr.To("one")
	spec.SecretBindingName, spec.CredentialsBindingName, spec.CloudProfileName = ptr.To("binding"), ptr.To("binding"), ptr.To("profile")
	spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "A", KubeconfigSecretName: ptr.To("webhooks")}, {Name: "B"}},
		StructuredAuthorization: &corev1beta1.StructuredAuthorization{ConfigMapName: "authorization", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{
			{AuthorizerName: "a", SecretName: "authorizer"}, {AuthorizerName: "b", SecretName: "webhooks"},
		}},
		StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
		AuditConfig:              &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}},
	}
	spec.Resources = []corev1beta1.NamedResourceReference{
		{Name: "a", ResourceRef: reference("v1", "Secret", "resource")}, {Name: "b", ResourceRef: reference("v1", "ConfigMap", "config")},
		{Name: "c", ResourceRef: reference("example.org/v1", "Secret", "of-another-group")},
		{Name: "d", ResourceRef: reference("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "resource")},
	}
	spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{
		{SecretName: ptr.To("dns-old")}, {CredentialsRef: ptr.To(reference("v1", "Secret", "dns"))},
		{CredentialsRef: ptr.To(reference("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "identity"))},
	}}
	return shoot
}

// described returns rules as text: verbs, resource and names.
func described(rules []rbacv1.PolicyRule) []string {
	var texts []string
	for _, rule := range rules {
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %s: %s",
			strings.Join(rule.Verbs, ","), strings.Join(rule.Resources, ","), strings.Join(rule.ResourceNames, " "))))
	}
	return texts
}

// expect compares the rights of Seeds in a namespace.
func expect(t *testing.T, namespace string, world World, want map[string][]string) {
	t.Helper()
	got := map[string][]string{}
	for seed, grants := range Wanted(namespace, world) {
		got[seed] = described(grants.Rules())
	}
	for seed := range got {
		if want[seed] == nil {
			t.Errorf("the gardenlet of Seed %s may %q", seed, got[seed])
		}
	}
	for seed, texts := range want {
		if !slices.Equal(got[seed], texts) {
			t.Errorf("the gardenlet of Seed %s may\n\t%s\nwant\n\t%s", seed, strings.Join(got[seed], "\n\t"), strings.Join(texts, "\n\t"))
		}
	}
}

// rightsOf returns the rights to the own objects of Shoots.
func rightsOf(shoots ...string) []string {
	with := func(suffix string) string { return strings.Join(shoots, suffix+" ") + suffix }
	return []string{
		"get,list,watch,patch configmaps: " + with(".ca-cluster"), "create configmaps:", "get,list,watch,patch internalsecrets: " + with(".ca-client"), "create internalsecrets:",
		"get,list,watch,patch,delete shootstates: " + with(""), "create shootstates:",
	}
}

func TestRightsForAShoot(t *testing.T) {
	world := World{Shoots: []corev1beta1.Shoot{everything()}}
	expect(t, "garden-dev", world, map[string][]string{"one": append([]string{
		"list,watch secrets: authorizer dns dns-old resource webhooks", "list,watch configmaps: audit authentication authorization config",
		"list,watch workloadidentities: identity resource", "create workloadidentities/token: identity resource",
	}, append(rightsOf("s"), "list,watch secretbindings: binding", "list,watch credentialsbindings: binding")...)})
}

// TestRulesHaveAllUses checks that no use is left out of the Roles.
func TestRulesHaveAllUses(t *testing.T) {
	all := Grants{}
	for use := range rights {
		all.add(use, "a")
	}
	granted := map[string]sets.Set[string]{}
	for _, rule := range all.Rules() {
		granted[rule.Resources[0]] = sets.New(rule.Verbs...).Union(granted[rule.Resources[0]])
	}
	for _, right := range rights {
		if missing := sets.New(right.verbs...).Difference(granted[right.resource]); missing.Len() > 0 {
			t.Errorf("the rules do not grant %v on %s", sets.List(missing), right.resource)
		}
	}
}

// TestRightsFollowTheSeed checks that each gardenlet has rights only for its own Shoots. A Shoot that moves counts for both.
func TestRightsFollowTheSeed(t *testing.T) {
	shoot := func(name, spec, status string) corev1beta1.Shoot {
		made := corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if spec != "" {
			made.Spec.SeedName = &spec
		}
		if status != "" {
			made.Status.SeedName = &status
		}
		return made
	}
	expect(t, "garden-dev", World{
		Shoots: []corev1beta1.Shoot{shoot("a", "one", "one"), shoot("b", "one", ""), shoot("moves", "two", "one"), shoot("pending", "", "")},
		Seeds:  []corev1beta1.Seed{{ObjectMeta: metav1.ObjectMeta{Name: "three"}}},
	}, map[string][]string{"one": rightsOf("a", "b", "moves"), "two": rightsOf("moves")})
}

// TestKeep checks that the reduced Shoot in the cache gives the same rights.
func TestKeep(t *testing.T) {
	shoot := everything()
	reduced := corev1beta1.Shoot{ObjectMeta: shoot.ObjectMeta}
	shoot.Annotations = map[string]string{"authentication.gardener.cloud/issuer": "managed", "other": "a"}
	Keep(&reduced, &shoot)
	if !maps.Equal(reduced.Annotations, map[string]string{"authentication.gardener.cloud/issuer": "managed"}) {
		t.Errorf("the annotations are %v", reduced.Annotations)
	}
	got, want := Wanted("", World{Shoots: []corev1beta1.Shoot{reduced}}), Wanted("", World{Shoots: []corev1beta1.Shoot{shoot}})
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if reduced.Spec.CloudProfileName != nil {
		t.Errorf("the cache keeps %+v", reduced.Spec)
	}
}

// TestRightsToIssuers checks that a gardenlet may publish documents only for its own Shoots with the managed issuer, under the name of their Project.
func TestRightsToIssuers(t *testing.T) {
	shoot := func(namespace, uid, spec, status string) corev1beta1.Shoot {
		made := corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s", UID: types.UID(uid)}}
		made.Spec.SeedName, made.Status.SeedName = &spec, &status
		return made
	}
	project := func(name, namespace string) corev1beta1.Project {
		return corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}}
	}
	world := World{
		Managed: []corev1beta1.Shoot{
			shoot("garden-dev", "1", "one", "one"), shoot("garden-dev", "2", "two", "one"), shoot("garden-prod", "3", "two", ""), shoot("garden-none", "4", "one", "one"),
		},
		Projects: []corev1beta1.Project{project("dev", "garden-dev"), project("prod", "garden-prod")},
	}
	expect(t, "gardener-system-shoot-issuer", world, map[string][]string{
		"one": {"list,watch,patch,delete secrets: dev--1 dev--2", "create secrets:"},
		"two": {"list,watch,patch,delete secrets: dev--2 prod--3", "create secrets:"},
	})
	expect(t, "garden-dev", world, nil)
}

// TestRightsToCredentials checks that a gardenlet reads the credentials of its Shoots, also from other namespaces, and no others.
func TestRightsToCredentials(t *testing.T) {
	bound := func(namespace, secret, credentials, of string) Bound {
		ref := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: of, Name: namespace + secret + credentials}
		return Bound{Namespace: namespace, SecretBinding: secret, CredentialsBinding: credentials, Ref: ref}
	}
	shoot := func(namespace, seed string, change func(*corev1beta1.ShootSpec)) corev1beta1.Shoot {
		shoot := corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
		shoot.Spec.SeedName = &seed
		change(&shoot.Spec)
		return shoot
	}
	world := World{
		Shoots: []corev1beta1.Shoot{shoot("a", "one", func(spec *corev1beta1.ShootSpec) { spec.SecretBindingName = ptr.To("x") })},
		Others: []corev1beta1.Shoot{shoot("b", "two", func(spec *corev1beta1.ShootSpec) { spec.CredentialsBindingName = ptr.To("y") })},
		Bindings: []Bound{
			bound("a", "x", "", "a"), bound("a", "", "x", "a"), bound("a", "other", "", "a"),
			bound("b", "", "y", "a"), bound("b", "y", "", "a"), bound("b", "", "z", "a"), bound("a", "x", "", "elsewhere"),
		},
	}
	wanted := Wanted("a", world)
	if got := wanted["one"][readSecret]; !got.Equal(sets.New("ax")) || !wanted["one"][readSecretBinding].Equal(sets.New("x")) {
		t.Errorf("the gardenlet of the Shoot in the namespace may read %v", wanted["one"])
	}
	if got := wanted["two"][readSecret]; !got.Equal(sets.New("by")) || len(wanted["two"]) != 1 {
		t.Errorf("the gardenlet of the Shoot in another namespace may read %v", wanted["two"])
	}
}

func TestRightsInGarden(t *testing.T) {
	ref := func(kind, namespace, name string) *corev1.ObjectReference {
		version := "v1"
		if kind == "WorkloadIdentity" {
			version = "security.gardener.cloud/v1alpha1"
		}
		return &corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}
	}
	seed := corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "u"}}
	seed.Spec.Backup = &corev1beta1.Backup{CredentialsRef: ref("WorkloadIdentity", "garden", "backup")}
	seed.Spec.DNS.Provider = &corev1beta1.SeedDNSProvider{CredentialsRef: ref("Secret", "garden", "dns")}
	seed.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{CredentialsRef: *ref("Secret", "elsewhere", "internal")}
	seed.Spec.Resources = []corev1beta1.NamedResourceReference{{ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "resource"}}}
	bucket := corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	bucket.Spec.SeedName, bucket.Spec.CredentialsRef = ptr.To("two"), ref("Secret", "garden", "bucket")
	entry := corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "e"}}
	entry.Spec.SeedName, entry.Spec.BucketName = ptr.To("three"), "b"
	installation := corev1beta1.ControllerInstallation{}
	installation.Spec.SeedRef, installation.Spec.DeploymentRef = &corev1.ObjectReference{Name: "four"}, &corev1.ObjectReference{Name: "d"}
	deployment := func(name, secret string) gardencorev1.ControllerDeployment {
		made := gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made.Helm = &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{
			PullSecretRef: &corev1.LocalObjectReference{Name: secret}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "bundle"}}}
		return made
	}
	world := World{
		Seeds: []corev1beta1.Seed{seed}, Buckets: []corev1beta1.BackupBucket{bucket}, Entries: []corev1beta1.BackupEntry{entry},
		Installations: []corev1beta1.ControllerInstallation{installation},
		Deployments:   []gardencorev1.ControllerDeployment{deployment("d", "pull"), deployment("not-installed", "other")},
	}
	expect(t, "garden", world, map[string][]string{
		"one": {
			"list,watch secrets: dns", "list,watch configmaps: resource", "list,watch workloadidentities: backup",
			"create workloadidentities/token: backup", "patch workloadidentities: backup",
			"list,watch,patch,delete secrets: generated-bucket-u", "create secrets:",
		},
		"two": {
			"list,watch secrets: bucket", "patch secrets: bucket", "list,watch,patch,delete secrets: generated-bucket-b", "create secrets:",
		},
		"three": {"list,watch secrets: bucket generated-bucket-b"},
		"four":  {"list,watch secrets: bundle pull"},
	})
	expect(t, "elsewhere", world, map[string][]string{"one": {"list,watch secrets: internal"}})
	expect(t, "garden-dev", world, nil)
}

// TestRightsWhileBackupsMove checks that the destination reads the credentials of the source's bucket from the hand-over until the backups are copied.
func TestRightsWhileBackupsMove(t *testing.T) {
	bucket := func(name, seed string) corev1beta1.BackupBucket {
		made := corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made.Spec.SeedName = &seed
		return made
	}
	entry := func(name, bucket, spec, status string) corev1beta1.BackupEntry {
		made := corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}}
		made.Spec = corev1beta1.BackupEntrySpec{BucketName: bucket, SeedName: &spec}
		if status != "" {
			made.Status.SeedName = &status
		}
		return made
	}
	elsewhere := entry("entry", "new", "new", "new")
	elsewhere.Namespace = "garden-other"
	for name, test := range map[string]struct {
		entries []corev1beta1.BackupEntry
		want    bool
	}{
		"before":                     {[]corev1beta1.BackupEntry{entry("entry", "old", "old", "old")}, false},
		"handed over":                {[]corev1beta1.BackupEntry{entry("entry", "old", "new", "old")}, true},
		"given up":                   {[]corev1beta1.BackupEntry{entry("entry", "old", "new", "")}, true},
		"being copied":               {[]corev1beta1.BackupEntry{entry("entry", "new", "new", "new"), entry("source-entry", "old", "new", "")}, true},
		"copied":                     {[]corev1beta1.BackupEntry{entry("entry", "new", "new", "new")}, false},
		"a source without its entry": {[]corev1beta1.BackupEntry{entry("source-entry", "old", "new", "new")}, false},
		"a source of another Seed":   {[]corev1beta1.BackupEntry{entry("entry", "old", "old", "old"), entry("source-entry", "old", "new", "")}, false},
		"a source elsewhere":         {[]corev1beta1.BackupEntry{elsewhere, entry("source-entry", "old", "new", "")}, false},
	} {
		rights := Wanted("garden", World{Buckets: []corev1beta1.BackupBucket{bucket("old", "old"), bucket("new", "new")}, Entries: test.entries})
		if got := rights["new"][readSecret].Has("generated-bucket-old"); got != test.want {
			t.Errorf("%s: the destination may read the credentials: %v", name, got)
		}
		if got := rights["old"][generateSecret]; !got.Equal(sets.New("generated-bucket-old")) || rights["old"][readSecret].Has("generated-bucket-new") {
			t.Errorf("%s: the source has %v", name, rights["old"])
		}
	}
}

func TestObjects(t *testing.T) {
	role, binding := Role("garden-dev", "one", Grants{}), Binding("garden-dev", "one", false)
	if role.Name != "gardener.cloud:system:seed:one:gardenlet-rights" || binding.Name != role.Name || binding.RoleRef.Name != role.Name ||
		len(binding.Subjects) != 1 || binding.Subjects[0].Name != "gardener.cloud:system:seed:one" || binding.Subjects[0].Kind != "User" ||
		role.Labels[constants.LabelGardenRole] != "gardenlet-rights" {
		t.Errorf("the objects are %+v, %+v", role, binding)
	}
}
