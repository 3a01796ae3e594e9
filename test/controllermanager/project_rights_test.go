package controllermanager

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// letters are the verbs, as one letter each.
var letters = []struct{ letter, verb string }{
	{"c", "create"}, {"d", "delete"}, {"D", "deletecollection"}, {"g", "get"}, {"l", "list"}, {"p", "patch"}, {"u", "update"}, {"w", "watch"}, {"m", "manage-members"},
}

// caller is a user in the table of rights.
type caller struct {
	title, user string
	groups      []string
}

// callers are the columns of the table.
var callers = []caller{
	{title: "owner", user: alice}, {title: "admin", user: "admin"}, {title: "admin by group", user: "somebody", groups: []string{"team"}},
	{title: "viewer", user: "viewer"}, {title: "uam", user: "uam"}, {title: "service account manager", user: "sam"},
	{title: "viewer and extension:dns", user: "system:serviceaccount:garden:robot"}, {title: "extension:dns", user: "dns"},
	{title: "admin of another Project", user: "mallory"}, {title: "anyone", user: "anyone"},
	{title: "operator", user: "operator"}, {title: "operator, reads only", user: "auditor"},
}

// kinds are the rows of the table: resources in the namespace of the Project, then those without a namespace. A name limits a row to one
// object.
var kinds = []struct{ group, resource, subresource, name string }{
	{"", "secrets", "", ""}, {"", "configmaps", "", ""}, {"", "events", "", ""}, {"", "resourcequotas", "", ""},
	{"", "serviceaccounts", "", ""}, {"", "serviceaccounts", "token", ""}, {"apps", "deployments", "", ""},
	{rbacv1.GroupName, "roles", "", ""}, {rbacv1.GroupName, "rolebindings", "", ""},
	{core, "shoots", "", ""}, {core, "shoots", "adminkubeconfig", ""}, {core, "shoots", "viewerkubeconfig", ""}, {core, "shoots", "binding", ""},
	{core, "shoots", "finalizers", ""}, {core, "shoots", "status", ""}, {core, "secretbindings", "", ""}, {core, "quotas", "", ""},
	{core, "namespacedcloudprofiles", "", ""}, {core, "internalsecrets", "", ""}, {core, "shootstates", "", ""}, {core, "backupentries", "", ""},
	{"operations.gardener.cloud", "bastions", "", ""}, {"security.gardener.cloud", "credentialsbindings", "", ""},
	{"security.gardener.cloud", "workloadidentities", "", ""}, {"security.gardener.cloud", "workloadidentities", "token", ""},
	{"", "namespaces", "", "own"}, {core, "projects", "", "dev"}, {core, "projects", "", "second"}, {core, "projects", "", ""},
	{core, "cloudprofiles", "", ""}, {core, "seeds", "", ""}, {core, "exposureclasses", "", ""}, {core, "controllerregistrations", "", ""},
	{rbacv1.GroupName, "clusterroles", "", ""},
}

const core = corev1beta1.GroupName

func mustParse(text string) resource.Quantity { return resource.MustParse(text) }

// review asks the API server whether a caller may do something in the namespace of the Project.
func (p *projects) review(who caller, attributes authorizationv1.ResourceAttributes) bool {
	p.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.user, Groups: append([]string{"system:authenticated"}, who.groups...), ResourceAttributes: &attributes,
	}}
	kit.Must(p, p.client.Create(p.Context(), review))
	return review.Status.Allowed
}

// may waits until a user may or may not do something with objects in the namespace of the Project, and returns how long that took.
func (p *projects) may(want bool, user, verb, resource string) time.Duration {
	p.Helper()
	began := time.Now()
	group := core
	if resource == "secrets" {
		group = ""
	}
	kit.EventuallyTrue(p, fmt.Sprintf("%s may %s %s: %t", user, verb, resource, want), func() bool {
		return p.review(caller{user: user}, authorizationv1.ResourceAttributes{Namespace: *p.dev.Spec.Namespace, Group: group, Resource: resource, Verb: verb}) == want
	})
	return time.Since(began)
}

// hasRights checks the complete table of what callers may do, as "kubectl auth can-i" shows it. The rows are kinds, the columns are
// roles, and the letters are verbs.
func (p *projects) hasRights() {
	kit.Change(p, p.client, p.dev, func() {
		p.dev.Spec.Members = append(p.dev.Spec.Members, member("admin", "admin"), member("group:team", "admin"), member("viewer", "viewer"),
			member("uam", "uam"), member("sam", "serviceaccountmanager"), member("account:robot", "viewer", "extension:dns"), member("dns", "extension:dns"))
	})
	p.create(&corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: corev1beta1.ProjectSpec{Members: []corev1beta1.ProjectMember{member("mallory", "admin")}},
	})
	p.eventually("foreign", corev1beta1.ProjectReady)
	p.eventually("dev", corev1beta1.ProjectReady)
	kit.EventuallyTrue(p, "the ClusterRoles are aggregated", func() bool {
		return p.review(caller{user: "dns"}, authorizationv1.ResourceAttributes{Namespace: *p.dev.Spec.Namespace, Group: "apps", Resource: "deployments", Verb: "list"}) &&
			p.review(caller{user: "operator"}, authorizationv1.ResourceAttributes{Group: core, Resource: "seeds", Verb: "create"}) &&
			p.review(caller{user: "auditor"}, authorizationv1.ResourceAttributes{Group: core, Resource: "projects", Verb: "list"})
	})
	for _, user := range []string{alice, "admin", "viewer"} {
		p.may(true, user, "list", "shoots")
	}
	p.may(true, "operator", "list", "secrets")
	p.may(true, alice, "list", "secrets")
	columns := make([][]string, len(callers))
	var all sync.WaitGroup
	for i, who := range callers {
		all.Go(func() { columns[i] = p.column(who) })
	}
	all.Wait()
	var table strings.Builder
	for i, kind := range kinds {
		fmt.Fprintln(&table, strings.Trim(strings.Join([]string{kind.resource, kind.subresource}, "/"), "/")+map[bool]string{true: " " + kind.name}[kind.name != ""])
		for j, who := range callers {
			if rights := columns[j][i]; rights != "" {
				fmt.Fprintf(&table, "  %-28s%s\n", who.title, rights)
			}
		}
	}
	golden.CheckText(p.T, "project-rights.txt", table.String())
	p.delete(&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
}

// column returns the rights of a caller by kind.
func (p *projects) column(who caller) []string {
	var column []string
	for _, kind := range kinds {
		name, rights := kind.name, ""
		if name == "own" {
			name = *p.dev.Spec.Namespace
		}
		for _, each := range letters {
			if each.letter == "m" && kind.resource != "projects" {
				continue
			}
			if p.review(who, authorizationv1.ResourceAttributes{
				Namespace: *p.dev.Spec.Namespace, Group: kind.group, Resource: kind.resource, Subresource: kind.subresource, Name: name, Verb: each.verb,
			}) {
				rights += each.letter
			}
		}
		column = append(column, rights)
	}
	return column
}

// usesRights checks with requests that everybody reads CloudProfiles, that only operators write them, and that an admin of a Project
// manages its NamespacedCloudProfiles and makes service accounts of others members.
func (p *projects) usesRights() {
	profile := &corev1beta1.CloudProfile{}
	kit.Must(p, p.as("anyone").Get(p.Context(), client.ObjectKey{Name: "local"}, profile))
	for user, allowed := range map[string]bool{"anyone": false, "admin": false, "auditor": false, "operator": true} {
		changed := profile.DeepCopy()
		changed.Labels = map[string]string{"changed": "true"}
		err := p.as(user).Update(p.Context(), changed, client.DryRunAll)
		if allowed {
			kit.Must(p, err)
		} else if !apierrors.IsForbidden(err) {
			p.Errorf("%s changes a CloudProfile: %v", user, err)
		}
	}
	own := &corev1beta1.NamespacedCloudProfile{ObjectMeta: metav1.ObjectMeta{Namespace: *p.dev.Spec.Namespace, Name: "own"}}
	own.Spec.Parent = corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
	own.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "huge", CPU: mustParse("64"), Memory: mustParse("512Gi"), GPU: mustParse("0")}}
	if err := p.as("viewer").Create(p.Context(), own.DeepCopy()); !apierrors.IsForbidden(err) {
		p.Errorf("a viewer creates a NamespacedCloudProfile: %v", err)
	}
	kit.Must(p, p.as("admin").Create(p.Context(), own))
	kit.Must(p, p.as("admin").Patch(p.Context(), own, merge(`{"metadata":{"labels":{"changed":"true"}}}`)))
	kit.Must(p, p.as("viewer").Get(p.Context(), client.ObjectKeyFromObject(own), own))
	kit.Must(p, p.as("admin").Delete(p.Context(), own))
}

// putsBack checks that rights that were changed or deleted by hand are put back.
func (p *projects) putsBack() {
	local := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: *p.dev.Spec.Namespace, Name: "gardener.cloud:system:project-viewer"}}
	kit.Change(p, p.client, local, func() { local.Subjects = append(local.Subjects, subject("eve")) })
	began := time.Now()
	kit.EventuallyTrue(p, "an added subject is removed", func() bool { return p.exists(local) && !slices.Contains(local.Subjects, subject("eve")) })
	p.Logf("an added subject was removed after %s", time.Since(began))
	p.may(false, "eve", "get", "shoots")
	p.delete(local)
	p.Logf("a deleted RoleBinding was back after %s", p.may(true, "viewer", "get", "shoots"))
	kit.EventuallyTrue(p, "the RoleBinding exists", func() bool { return p.exists(local) })
	kit.Change(p, p.client, local, func() { local.Labels, local.Subjects = nil, nil })
	kit.EventuallyTrue(p, "it has its subjects", func() bool { return p.exists(local) && len(local.Subjects) > 0 })
	p.Logf("a RoleBinding without labels and subjects was back after %s", p.may(true, "viewer", "get", "shoots"))
	kit.Eventually(p, "another RoleBinding has the name", func() string { // the controller might be faster
		if err := p.client.Delete(p.Context(), local); err != nil && !apierrors.IsNotFound(err) {
			return err.Error()
		}
		return kit.TextOf(p.client.Create(p.Context(), &rbacv1.RoleBinding{ // it refers to another ClusterRole, and this reference is immutable
			ObjectMeta: metav1.ObjectMeta{Namespace: local.Namespace, Name: local.Name, Labels: local.Labels},
			Subjects:   []rbacv1.Subject{subject("eve")}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		}))
	})
	p.may(false, "eve", "list", "secrets")
	p.may(true, "viewer", "get", "shoots")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:project-viewer:dev"}}
	mayDelete := func(want bool) {
		p.Helper()
		kit.EventuallyTrue(p, fmt.Sprintf("a viewer may delete the Project: %t", want), func() bool {
			return p.review(caller{user: "viewer"}, authorizationv1.ResourceAttributes{Group: core, Resource: "projects", Name: "dev", Verb: "delete"}) == want
		})
	}
	kit.Change(p, p.client, role, func() { role.Rules[1].Verbs = append(role.Rules[1].Verbs, "delete") })
	kit.EventuallyTrue(p, "an added verb is removed", func() bool { return p.exists(role) && !slices.Contains(role.Rules[1].Verbs, "delete") })
	mayDelete(false)
	extension := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:extension:project:dev:dns"}}
	kit.Change(p, p.client, extension, func() { extension.AggregationRule, extension.Rules = nil, nil })
	kit.EventuallyTrue(p, "the role of the extension is back", func() bool {
		return p.exists(extension) && extension.AggregationRule != nil && len(extension.Rules) > 0
	})
	namespace := namespaceNamed(*p.dev.Spec.Namespace)
	kit.Change(p, p.client, namespace, func() { delete(namespace.Labels, "project.gardener.cloud/name") })
	kit.EventuallyTrue(p, "the label of the namespace is back", func() bool { return p.exists(namespace) && namespace.Labels["project.gardener.cloud/name"] == "dev" })
}

// removesMember checks that a member who is removed has no rights any more, also none that an extension defines.
func (p *projects) removesMember() {
	p.may(true, "admin", "delete", "shoots")
	kit.Change(p, p.client, p.dev, func() {
		p.dev.Spec.Members = slices.DeleteFunc(p.dev.Spec.Members, func(m corev1beta1.ProjectMember) bool {
			return slices.Contains([]string{"admin", "dns", "robot"}, m.Name)
		})
	})
	p.Logf("a removed member lost all rights after %s", p.may(false, "admin", "delete", "shoots"))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:extension:project:dev:dns"}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: *p.dev.Spec.Namespace, Name: role.Name}}
	kit.EventuallyTrue(p, "the role of the extension is deleted", func() bool { return !p.exists(role) && !p.exists(binding) })
}

// grantsOnlyMembers checks that the policies refuse what the permissions of the controller-manager would allow beyond its task.
func (p *projects) grantsOnlyMembers() {
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	local := func(namespace, name, role string) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: []rbacv1.Subject{subject("eve")},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
	}
	rule := func(group, resource, name, verb string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{verb}}}
	}
	role := func(name string, rules []rbacv1.PolicyRule, selecting map[string]string) client.Object {
		made := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		if selecting != nil {
			made.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: selecting}}}
		}
		return made
	}
	const own, ofExtension, member = "gardener.cloud:system:project:x", "gardener.cloud:extension:project:x:y", "gardener.cloud:system:project-member"
	aggregated := map[string]string{"rbac.gardener.cloud/aggregate-to-extension-role": "y"}
	manager := p.as(user)
	for what, object := range map[string]client.Object{
		"another ClusterRole":               role("other", nil, nil),
		"all rights":                        role(own, all, nil),
		"the rights of another Project":     role(own, rule(core, "projects", "y", "get"), nil),
		"a namespace of the system":         role(own, rule("", "namespaces", "kube-system", "get"), nil),
		"deletion of a namespace":           role(own, rule("", "namespaces", "garden-x", "delete"), nil),
		"rules for an extension":            role(ofExtension, all, aggregated),
		"rules without an aggregation":      role(ofExtension, all, nil),
		"another aggregation":               role(ofExtension, nil, map[string]string{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}),
		"an aggregation under another name": role(own, nil, aggregated),
		"another ClusterRoleBinding": &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: own}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
		"another RoleBinding":                local("garden-old", "other", member),
		"a binding of another ClusterRole":   local(*p.dev.Spec.Namespace, member, "admin"),
		"a binding in no Project":            local("kube-system", member, member),
		"a binding for an extension outside": local("kube-system", ofExtension, ofExtension),
		"another namespace":                  &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
	} {
		kit.Eventually(p, what+" is refused", func() string {
			copied, _ := object.DeepCopyObject().(client.Object)
			if err := manager.Create(p.Context(), copied, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "controller-manager.gardener.cloud") {
				return kit.TextOf(err)
			}
			return ""
		})
	}
	if err := manager.Delete(p.Context(), namespaceNamed("kube-public"), client.DryRunAll); !apierrors.IsForbidden(err) {
		p.Errorf("the controller-manager deletes a namespace of the system: %v", err)
	}
}
