// Package projectmutator is an admission plugin of the garden's API. A Project shows who made it and has an owner, who is one
// of its members.
package projectmutator

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	roleAdmin = "admin"
	roleOwner = "owner"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ProjectMutator",
	Rules: []admission.Rule{{
		Resource: gardencorev1beta1.Resource("projects"), Operations: admission.OnCreateOrUpdate, Admit: admission.On(admit),
	}},
}

func admit(_ context.Context, request *admission.Request, _ *admission.Garden, project, old *gardencorev1beta1.Project) error {
	if project.DeletionTimestamp != nil {
		return nil
	}
	if old == nil {
		project.Spec.CreatedBy = &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: request.User.GetName()}
		setOwner(&project.Spec)
	}
	addOwner(&project.Spec)
	return nil
}

// setOwner makes the first member with the role of the owner, or else the creator, the owner of a Project without one.
func setOwner(spec *gardencorev1beta1.ProjectSpec) {
	if spec.Owner != nil {
		return
	}
	owner := *spec.CreatedBy
	for _, member := range spec.Members {
		if member.Role == roleOwner || slices.Contains(member.Roles, roleOwner) {
			owner = member.Subject
			break
		}
	}
	spec.Owner = &owner
}

func addOwner(spec *gardencorev1beta1.ProjectSpec) {
	if spec.Owner == nil || slices.ContainsFunc(spec.Members, func(member gardencorev1beta1.ProjectMember) bool { return member.Subject == *spec.Owner }) {
		return
	}
	spec.Members = append(spec.Members, gardencorev1beta1.ProjectMember{Subject: *spec.Owner, Role: roleAdmin, Roles: []string{roleOwner}})
}
