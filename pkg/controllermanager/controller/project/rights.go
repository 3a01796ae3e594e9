package project

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// prefix is the prefix of the names of ClusterRoles and bindings. Those for one Project end with its name.
	prefix = "gardener.cloud:system:project"
	// The ClusterRoles with these names are in the chart of the API server. RoleBindings with the same names bind them.
	memberRole                = prefix + "-member"
	viewerRole                = prefix + "-viewer"
	serviceAccountManagerRole = prefix + "-serviceaccountmanager"
	// extensionPrefix is the prefix of the names of ClusterRoles and RoleBindings for the roles that extensions of the API define.
	extensionPrefix = "gardener.cloud:extension:project:"

	projects      = "projects"
	manageMembers = "manage-members"
)

// granted is what the members of a Project may do: all ClusterRoles, ClusterRoleBindings and RoleBindings.
type granted struct {
	roles    []rbacv1.ClusterRole
	bindings []rbacv1.ClusterRoleBinding
	local    []rbacv1.RoleBinding
}

// grantedTo returns the rights of the members of a Project. They depend only on the Project.
func grantedTo(project *corev1beta1.Project) granted {
	var (
		all      granted
		owners   = withRoles(project, constants.ProjectMemberOwner)
		managers = withRoles(project, constants.ProjectMemberUserAccessManager)
		members  = withRoles(project, constants.ProjectMemberAdmin, constants.ProjectMemberOwner)
		viewers  = withRoles(project, constants.ProjectMemberViewer)
	)
	for _, one := range []struct {
		suffix    string
		subjects  []rbacv1.Subject
		namespace bool
		verbs     []string
	}{
		{"", owners, true, []string{"get", "patch", manageMembers, "update", "delete"}},
		{"-uam", managers, false, []string{"get", manageMembers, "patch", "update"}},
		{"-member", members, true, []string{"get", "patch", "update", "delete"}},
		{"-viewer", viewers, true, []string{"get"}},
	} {
		meta := objectMeta(project, constants.RoleProject, "", prefix+one.suffix+":"+project.Name)
		role := rbacv1.ClusterRole{ObjectMeta: meta}
		if one.namespace {
			role.Rules = append(role.Rules, named("", "namespaces", namespaceOf(project), "get"))
		}
		role.Rules = append(role.Rules, named(corev1beta1.GroupName, projects, project.Name, one.verbs...))
		all.roles = append(all.roles, role)
		all.bindings = append(all.bindings, rbacv1.ClusterRoleBinding{ObjectMeta: *meta.DeepCopy(), RoleRef: clusterRole(meta.Name), Subjects: one.subjects})
	}
	bind := func(label, name string, subjects []rbacv1.Subject) {
		meta := objectMeta(project, label, namespaceOf(project), name)
		all.local = append(all.local, rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: clusterRole(name), Subjects: subjects})
	}
	bind(constants.RoleProject, memberRole, members)
	bind(constants.RoleProject, viewerRole, viewers)
	bind(constants.RoleProject, serviceAccountManagerRole,
		withRoles(project, constants.ProjectMemberOwner, constants.ProjectMemberServiceAccountManager))
	for _, role := range extensionRoles(project) {
		name := extensionPrefix + project.Name + ":" + role
		all.roles = append(all.roles, rbacv1.ClusterRole{
			ObjectMeta: objectMeta(project, constants.RoleExtensionProject, "", name),
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
				{MatchLabels: map[string]string{constants.LabelAggregateToExtensionRole: role}},
			}},
		})
		bind(constants.RoleExtensionProject, name, withRoles(project, constants.PrefixProjectMemberExtension+role))
	}
	return all
}

func objectMeta(project *corev1beta1.Project, label, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{owner(project)},
		Labels: map[string]string{constants.LabelGardenRole: label, constants.LabelProjectName: project.Name},
	}
}

func named(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: verbs}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// rolesOf returns all roles of a member. The first one has a field of its own.
func rolesOf(member corev1beta1.ProjectMember) []string {
	return append([]string{member.Role}, member.Roles...)
}

// withRoles returns the members with any of the roles, each once. spec.owner has the role owner.
func withRoles(project *corev1beta1.Project, roles ...string) []rbacv1.Subject {
	var found []rbacv1.Subject
	add := func(subject rbacv1.Subject) {
		if subject.Kind != rbacv1.ServiceAccountKind {
			subject.APIGroup = rbacv1.GroupName // as the API server sets it
		}
		if !slices.Contains(found, subject) {
			found = append(found, subject)
		}
	}
	if project.Spec.Owner != nil && slices.Contains(roles, constants.ProjectMemberOwner) {
		add(*project.Spec.Owner)
	}
	for _, member := range project.Spec.Members {
		if slices.ContainsFunc(rolesOf(member), func(role string) bool { return slices.Contains(roles, role) }) {
			add(member.Subject)
		}
	}
	return found
}

// extensionRoles returns the names of the roles of members that extensions of the API define, without their prefix, sorted.
func extensionRoles(project *corev1beta1.Project) []string {
	var found []string
	for _, member := range project.Spec.Members {
		for _, role := range rolesOf(member) {
			if name, is := strings.CutPrefix(role, constants.PrefixProjectMemberExtension); is {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
