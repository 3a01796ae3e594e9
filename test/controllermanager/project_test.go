package controllermanager

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// projectConfig makes unused Projects stale at once, and configures two quotas.
const projectConfig = `, project: {minimumLifetimeDays: 0, staleGracePeriodDays: 0, quotas: [
  {config: {metadata: {labels: {size: large}}, spec: {hard: {count/secrets: "900"}}}, projectSelector: {matchLabels: {size: large}}},
  {config: {metadata: {labels: {size: small}}, spec: {hard: {count/secrets: "400", count/shoots.core.gardener.cloud: "100"}}}}]}`

// alice creates and owns the Project of most tests.
const alice = "alice"

// TestProjects runs Projects through their lives. The steps depend on each other.
func TestProjects(t *testing.T) {
	p := &projects{fixture: newFixture(t, func(f *fixture) {
		f.options.ControlPlane.ControllerManager = true // aggregates ClusterRoles, and deletes what is in namespaces
		f.controllers = projectConfig
	})}
	p.prepare()
	p.start()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"created", p.created}, {"rights", p.hasRights}, {"use of rights", p.usesRights}, {"rights by hand", p.putsBack}, {"removed member", p.removesMember},
		{"extensions", p.bindsExtensions},
		{"quota", p.keepsQuota}, {"one namespace", p.sharesNamespace}, {"adoption", p.adopts}, {"activity", p.recordsActivity},
		{"rest", p.rests}, {"restart", p.restarts}, {"policies", p.grantsOnlyMembers},
		{"stale", p.deletesStale}, {"in use", p.waitsForShoots}, {"deleted", p.deletes},
	} {
		before := p.T
		if !t.Run(step.name, func(t *testing.T) { p.T = t; step.run() }) {
			p.T = before
			t.FailNow()
		}
		p.T = before
	}
	sent, _ := p.requests(0)
	for _, event := range sent {
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			t.Errorf("the controller-manager lacks the permission to %s %s", event.Verb, event.RequestURI)
		}
	}
}

type projects struct {
	*fixture
	dev *corev1beta1.Project
	// shoot is a Shoot in the namespace of dev.
	shoot *corev1beta1.Shoot
}

// subject returns a user, a group with the prefix group:, or a service account of namespace garden with the prefix account:.
func subject(name string) rbacv1.Subject {
	if group, is := strings.CutPrefix(name, "group:"); is {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}
	}
	if account, is := strings.CutPrefix(name, "account:"); is {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "garden", Name: account}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func member(name string, roles ...string) corev1beta1.ProjectMember {
	return corev1beta1.ProjectMember{Subject: subject(name), Role: roles[0], Roles: roles[1:]}
}

// as returns a client for a user.
func (p *projects) as(name string) client.Client {
	p.Helper()
	config := p.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	made, err := client.New(config, client.Options{Scheme: p.client.Scheme(), Mapper: p.client.RESTMapper()})
	kit.Must(p, err)
	return made
}

// prepare binds the users that no Project makes members, and defines the rights of an extension's role.
func (p *projects) prepare() {
	for name, role := range map[string]string{
		alice: "gardener.cloud:system:project-creation", "operator": "gardener.cloud:system:administrators", "auditor": "gardener.cloud:system:viewers",
	} {
		p.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject(name)},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		})
	}
	p.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "extension-dns", Labels: map[string]string{constants.LabelAggregateToExtensionRole: "dns"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}}},
	})
	p.create(example(p.fixture, "cloudprofile.yaml", &corev1beta1.CloudProfile{}))
}

// eventually waits until a Project has a phase for its generation, and returns it.
func (p *projects) eventually(name string, phase corev1beta1.ProjectPhase) *corev1beta1.Project {
	p.Helper()
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
	kit.Eventually(p, fmt.Sprintf("Project %s is %s", name, phase), func() string {
		if !p.exists(project) {
			return "it does not exist"
		}
		if project.Status.Phase != phase || project.Status.ObservedGeneration != project.Generation {
			return fmt.Sprintf("generation %d, %+v", project.Generation, project.Status)
		}
		return ""
	})
	return project
}

// reported waits for an Event about a Project with a reason and a text.
func (p *projects) reported(project *corev1beta1.Project, reason, text string) {
	p.Helper()
	kit.EventuallyTrue(p, "an Event has the reason "+reason+" and the text "+text, func() bool {
		var events corev1.EventList
		kit.Must(p, p.client.List(p.Context(), &events))
		return slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
			return event.Reason == reason && event.InvolvedObject.UID == project.UID && strings.Contains(event.Message, text)
		})
	})
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// created checks the namespace of a Project that a user has created.
func (p *projects) created() {
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}
	kit.Eventually(p, "a user can create a Project", func() string { return kit.TextOf(p.as(alice).Create(p.Context(), project.DeepCopy())) })
	p.dev = p.eventually("dev", corev1beta1.ProjectReady)
	name := ptr.Deref(p.dev.Spec.Namespace, "")
	namespace := namespaceNamed(name)
	if !strings.HasPrefix(name, "garden-dev-") || !p.exists(namespace) {
		p.Fatalf("the namespace is %q", name)
	}
	if namespace.Labels[constants.LabelGardenRole] != "project" || namespace.Labels[constants.LabelProjectName] != "dev" ||
		namespace.Annotations[constants.AnnotationNamespaceProject] != string(p.dev.UID) || !metav1.IsControlledBy(namespace, p.dev) ||
		namespace.Annotations[constants.AnnotationNamespaceCreatedByProjectController] != "true" {
		p.Errorf("the namespace is %+v", namespace.ObjectMeta)
	}
	if p.dev.Spec.CreatedBy.Name != alice || p.dev.Spec.Owner.Name != alice || !controllerutil.ContainsFinalizer(p.dev, "gardener") {
		p.Errorf("the Project is %+v", p.dev)
	}
	p.reported(p.dev, "NamespaceReconcileSuccessful", name)
}

// keepsQuota checks that the first configured quota with a matching selector is used, that values that were raised remain, and that
// others return.
func (p *projects) keepsQuota() {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: *p.dev.Spec.Namespace, Name: "gardener"}}
	limits := func() string {
		if !p.exists(quota) {
			return "none"
		}
		return fmt.Sprint(quota.Labels["size"], " ", quota.Spec.Hard.Name("count/secrets", "").String(), " ", len(quota.Spec.Hard))
	}
	eventually := func(want string) {
		p.Helper()
		kit.Eventually(p, "the quota is "+want, func() string {
			if got := limits(); got != want {
				return got
			}
			return ""
		})
	}
	eventually("small 400 2")
	kit.Change(p, p.client, quota, func() {
		quota.Spec.Hard["count/secrets"], quota.Spec.Hard["pods"] = mustParse("500"), mustParse("1")
	})
	eventually("small 500 2") // pods is not configured
	kit.Change(p, p.client, p.dev, func() { p.dev.Labels = map[string]string{"size": "large"} })
	eventually("large 500 1")
	p.delete(quota)
	eventually("large 900 1")
}

// sharesNamespace checks that of two Projects with one namespace only the one gets it that was first, not the first in lists.
func (p *projects) sharesNamespace() {
	with := func(name string) *corev1beta1.Project {
		return &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ProjectSpec{
			Namespace: ptr.To("garden-shared"), Members: []corev1beta1.ProjectMember{member("mallory", "admin")},
		}}
	}
	p.create(with("second"))
	second := p.eventually("second", corev1beta1.ProjectReady)
	if err := p.client.Create(p.Context(), with("first")); apierrors.IsForbidden(err) {
		p.Logf("the API server refuses it already: %v", err)
	} else {
		kit.Must(p, err)
		p.reported(p.eventually("first", corev1beta1.ProjectFailed), "NamespaceReconcileFailed", "Namespace garden-shared belongs to another Project")
		p.delete(with("first"))
		kit.EventuallyTrue(p, "the Project is deleted", func() bool { return !p.exists(with("first")) })
	}
	namespace := namespaceNamed("garden-shared")
	if !p.exists(namespace) || namespace.Annotations[constants.AnnotationNamespaceProject] != string(second.UID) {
		p.Errorf("the namespace is %+v", namespace.ObjectMeta)
	}
	p.eventually("second", corev1beta1.ProjectReady)
}

// adopts checks that a namespace without the labels is not adopted, that it is as soon as it has them, and that it then outlives its
// Project.
func (p *projects) adopts() {
	namespace := namespaceNamed("garden-old")
	p.create(namespace)
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To("garden-old")}}
	p.create(project)
	p.reported(p.eventually("old", corev1beta1.ProjectFailed), "NamespaceReconcileFailed", "lacks the labels")
	label := func(name string) {
		kit.Change(p, p.client, namespace, func() {
			namespace.Labels = map[string]string{constants.LabelGardenRole: "project", constants.LabelProjectName: name}
		})
	}
	label("other")
	p.quiet()
	p.eventually("old", corev1beta1.ProjectFailed)
	label("old")
	p.eventually("old", corev1beta1.ProjectReady)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-old", Name: "gardener.cloud:system:project-member"}}
	if !p.exists(binding) {
		p.Error("the members have no rights")
	}
	p.delete(project)
	kit.EventuallyTrue(p, "the Project is deleted", func() bool { return !p.exists(project) })
	if !p.exists(namespace) || namespace.DeletionTimestamp != nil || len(namespace.OwnerReferences) > 0 || namespace.Labels[constants.LabelProjectName] != "" ||
		namespace.Annotations[constants.AnnotationNamespaceProject] != "" {
		p.Errorf("the namespace is %+v", namespace.ObjectMeta)
	}
	if p.exists(binding) {
		p.Error("the members still have rights")
	}
}

// recordsActivity checks that a new Shoot and a new labelled Secret are activities, and others are not.
func (p *projects) recordsActivity() {
	p.shoot = example(p.fixture, "shoot.yaml", &corev1beta1.Shoot{})
	p.shoot.Namespace, p.shoot.Spec.SeedName = *p.dev.Spec.Namespace, nil
	p.create(p.shoot)
	active := func(want func(last *metav1.Time) bool) {
		p.Helper()
		kit.Eventually(p, "the activity is recorded", func() string {
			p.exists(p.dev)
			if last := p.dev.Status.LastActivityTimestamp; !want(last) {
				return fmt.Sprint(last)
			}
			return ""
		})
	}
	active(func(last *metav1.Time) bool { return last.Equal(&p.shoot.CreationTimestamp) })
	before := metav1.NewTime(time.Now().Add(-time.Hour * 24).Truncate(time.Second))
	kit.Must(p, p.client.Status().Patch(p.Context(), p.dev, merge(fmt.Sprintf(`{"status":{"lastActivityTimestamp":%q}}`, before.UTC().Format(time.RFC3339)))))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: *p.dev.Spec.Namespace, Name: "other"}}
	p.create(secret)
	kit.Must(p, p.client.Status().Patch(p.Context(), p.shoot, merge(`{"status":{"technicalID":"shoot--dev--a"}}`)))
	p.quiet()
	active(func(last *metav1.Time) bool { return last.Equal(&before) })
	p.create(&securityv1alpha1.CredentialsBinding{ // the controller of bindings labels the Secret
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name},
	})
	active(func(last *metav1.Time) bool { return last.Equal(&secret.CreationTimestamp) })
}

// deletesStale checks that an unused Project becomes stale, that it is not if its namespace is excluded or has a Shoot, and that it is
// deleted when it has been stale for long enough.
func (p *projects) deletesStale() {
	stale, kept := p.eventually("second", corev1beta1.ProjectReady), &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	p.create(kept)
	isStale := func(project *corev1beta1.Project, want bool) {
		p.Helper()
		kit.EventuallyTrue(p, fmt.Sprintf("Project %s is stale: %t", project.Name, want), func() bool {
			return p.exists(project) && (project.Status.StaleSinceTimestamp != nil) == want && (project.Status.StaleAutoDeleteTimestamp != nil) == want
		})
	}
	isStale(stale, true)
	isStale(kept, true)
	isStale(p.dev, false)
	kit.Must(p, p.client.Patch(p.Context(), namespaceNamed(*kept.Spec.Namespace), merge(`{"metadata":{"annotations":{"project.gardener.cloud/skip-stale-check":"true"}}}`)))
	isStale(kept, false)
	since := time.Now().Add(-91 * 24 * time.Hour).UTC().Format(time.RFC3339)
	kit.Must(p, p.client.Status().Patch(p.Context(), stale, merge(fmt.Sprintf(`{"status":{"staleSinceTimestamp":%q,"staleAutoDeleteTimestamp":%q}}`, since, since))))
	kit.EventuallyTrue(p, "the stale Project and its namespace are deleted", func() bool { return !p.exists(stale) && !p.exists(namespaceNamed("garden-shared")) })
	p.reported(stale, "StaleProjectDeleted", "Nothing has used")
}

// waitsForShoots checks that a Project with a Shoot is not deleted, and that its members keep their rights until it is, unless they
// are removed.
func (p *projects) waitsForShoots() {
	p.delete(p.dev)
	p.eventually("dev", corev1beta1.ProjectTerminating)
	p.reported(p.dev, "NamespaceNotEmpty", "Shoot "+client.ObjectKeyFromObject(p.shoot).String())
	if namespace := namespaceNamed(*p.dev.Spec.Namespace); !p.exists(namespace) || namespace.DeletionTimestamp != nil {
		p.Error("the namespace is deleted")
	}
	p.may(true, alice, "get", "shoots")
	p.may(true, "viewer", "get", "shoots")
	kit.Change(p, p.client, p.dev, func() {
		p.dev.Spec.Members = slices.DeleteFunc(p.dev.Spec.Members, func(m corev1beta1.ProjectMember) bool { return m.Name == "viewer" })
	})
	p.may(false, "viewer", "get", "shoots")
}

// deletes checks that a Project is deleted with its namespace and all rights after its last Shoot.
func (p *projects) deletes() {
	kit.Change(p, p.client, p.shoot, func() { p.shoot.Finalizers = nil })
	p.delete(p.shoot)
	kit.EventuallyTrue(p, "the Project and its namespace are deleted", func() bool { return !p.exists(p.dev) && !p.exists(namespaceNamed(*p.dev.Spec.Namespace)) })
	p.reported(p.dev, "NamespaceMarkedForDeletion", *p.dev.Spec.Namespace)
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		kit.Must(p, p.client.List(p.Context(), list, client.MatchingLabels{constants.LabelProjectName: "dev"}))
		if text := fmt.Sprintf("%+v", list); strings.Contains(text, ":dev") {
			p.Errorf("rights are left: %s", text)
		}
	}
}
