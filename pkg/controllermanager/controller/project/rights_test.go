package project

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func member(subject rbacv1.Subject, role string, more ...string) corev1beta1.ProjectMember {
	return corev1beta1.ProjectMember{Subject: subject, Role: role, Roles: more}
}

// lines returns rights as text: kind, name, rules and subjects.
func (g granted) lines() (lines []string) {
	subjects := func(all []rbacv1.Subject) string {
		names := []string{}
		for _, one := range all {
			names = append(names, strings.Trim(one.Kind+" "+one.Namespace+"/"+one.Name, "/"))
		}
		return strings.Join(names, ", ")
	}
	for _, role := range g.roles {
		var rules []string
		for _, rule := range role.Rules {
			rules = append(rules, fmt.Sprintf("%s %s %s", strings.Join(rule.Verbs, ","), rule.Resources[0], rule.ResourceNames[0]))
		}
		if role.AggregationRule != nil {
			rules = append(rules, fmt.Sprint(role.AggregationRule.ClusterRoleSelectors[0].MatchLabels))
		}
		lines = append(lines, "ClusterRole "+role.Name+": "+strings.Join(rules, "; "))
	}
	for _, binding := range g.bindings {
		lines = append(lines, "ClusterRoleBinding "+binding.RoleRef.Name+": "+subjects(binding.Subjects))
	}
	for _, binding := range g.local {
		lines = append(lines, "RoleBinding "+binding.Namespace+" "+binding.RoleRef.Name+": "+subjects(binding.Subjects))
	}
	return lines
}

func TestGrantedTo(t *testing.T) {
	project, alice := dev(), user("alice")
	project.Spec.Namespace = new("garden-dev")
	project.Spec.Owner = &alice
	robot := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "garden-dev", Name: "robot"}
	project.Spec.Members = []corev1beta1.ProjectMember{
		member(alice, "admin", "owner"), member(rbacv1.Subject{Kind: rbacv1.UserKind, Name: "bob"}, "admin", "viewer", "extension:b"),
		member(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "team"}, "viewer"), member(robot, "serviceaccountmanager", "extension:a", "extension:b"),
		member(user("uma"), "uam"),
	}
	want := []string{
		"ClusterRole gardener.cloud:system:project:dev: get namespaces garden-dev; get,patch,manage-members,update,delete projects dev",
		"ClusterRole gardener.cloud:system:project-uam:dev: get,manage-members,patch,update projects dev",
		"ClusterRole gardener.cloud:system:project-member:dev: get namespaces garden-dev; get,patch,update,delete projects dev",
		"ClusterRole gardener.cloud:system:project-viewer:dev: get namespaces garden-dev; get projects dev",
		"ClusterRole gardener.cloud:extension:project:dev:a: map[rbac.gardener.cloud/aggregate-to-extension-role:a]",
		"ClusterRole gardener.cloud:extension:project:dev:b: map[rbac.gardener.cloud/aggregate-to-extension-role:b]",
		"ClusterRoleBinding gardener.cloud:system:project:dev: User /alice",
		"ClusterRoleBinding gardener.cloud:system:project-uam:dev: User /uma",
		"ClusterRoleBinding gardener.cloud:system:project-member:dev: User /alice, User /bob",
		"ClusterRoleBinding gardener.cloud:system:project-viewer:dev: User /bob, Group /team",
		"RoleBinding garden-dev gardener.cloud:system:project-member: User /alice, User /bob",
		"RoleBinding garden-dev gardener.cloud:system:project-viewer: User /bob, Group /team",
		"RoleBinding garden-dev gardener.cloud:system:project-serviceaccountmanager: User /alice, ServiceAccount garden-dev/robot",
		"RoleBinding garden-dev gardener.cloud:extension:project:dev:a: ServiceAccount garden-dev/robot",
		"RoleBinding garden-dev gardener.cloud:extension:project:dev:b: User /bob, ServiceAccount garden-dev/robot",
	}
	all := grantedTo(project)
	if got := all.lines(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, subject := range all.local[0].Subjects {
		if subject.APIGroup != rbacv1.GroupName {
			t.Errorf("the API server would change %+v", subject)
		}
	}
	for _, role := range all.roles {
		if len(role.OwnerReferences) != 1 || role.Labels["project.gardener.cloud/name"] != "dev" {
			t.Errorf("the metadata of %s is %+v", role.Name, role.ObjectMeta)
		}
	}
}

// TestMembersLoseRights checks that a role without members is not granted.
func TestMembersLoseRights(t *testing.T) {
	project := dev()
	project.Spec.Members = []corev1beta1.ProjectMember{member(user("bob"), "admin", "extension:a")}
	before := strings.Join(grantedTo(project).lines(), "\n")
	project.Spec.Members = nil
	after := strings.Join(grantedTo(project).lines(), "\n")
	if !strings.Contains(before, "extension:project:dev:a") || !strings.Contains(before, "bob") || strings.Contains(after, "extension:project") || strings.Contains(after, "bob") {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
