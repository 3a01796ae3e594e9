package core

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type project = *gardencorev1beta1.Project

func projects() *registry.Kind[project] {
	return &registry.Kind[project]{
		Resource:                 resource("Project"),
		New:                      func() project { return &gardencorev1beta1.Project{} },
		NewList:                  func() runtime.Object { return &gardencorev1beta1.ProjectList{} },
		SelectableFields:         func(p project) fields.Set { return fields.Set{"spec.namespace": text(p.Spec.Namespace)} },
		IndexedField:             "spec.namespace",
		AllowUnconditionalUpdate: true,
		Columns: []registry.Column[project]{
			{Name: "Namespace", Description: "Namespace of the project.", Value: func(p project) any { return cell.Text(p.Spec.Namespace) }},
			{Name: "Status", Description: "Phase of the project.", Value: func(p project) any { return cell.OrUnknown(string(p.Status.Phase)) }},
			{Name: "Owner", Description: "Name of the owner.", Value: func(p project) any {
				if p.Spec.Owner == nil {
					return cell.None
				}
				return p.Spec.Owner.Name
			}},
			{Name: "Creator", Description: "Name of the user who created the project.", Value: func(p project) any {
				if p.Spec.CreatedBy == nil {
					return cell.None
				}
				return p.Spec.CreatedBy.Name
			}},
		},
		CopyStatus:           func(to, from project) { to.Status = from.Status },
		GenerationChanges:    func(updated, old project) bool { return differ(updated.Spec, old.Spec) },
		Canonicalize:         canonicalizeOwner,
		Validate:             validation.ValidateProject,
		ValidateUpdate:       validation.ValidateProjectUpdate,
		ValidateStatusUpdate: validation.ValidateProjectStatusUpdate,
	}
}

// canonicalizeOwner gives the role owner to the member that is the owner, and removes it from all others. In a Project
// without an owner, it keeps the role: that member becomes the owner at admission.
func canonicalizeOwner(p project) {
	if p.Spec.Owner == nil {
		return
	}
	for i := range p.Spec.Members {
		member := &p.Spec.Members[i]
		roles := slices.DeleteFunc(append([]string{member.Role}, member.Roles...), func(role string) bool {
			return role == "" || role == constants.ProjectMemberOwner
		})
		had := member.Role == constants.ProjectMemberOwner || slices.Contains(member.Roles, constants.ProjectMemberOwner)
		isOwner := member.Subject == *p.Spec.Owner
		if had == isOwner {
			continue
		}
		if isOwner {
			roles = append(roles, constants.ProjectMemberOwner)
		}
		member.Role, member.Roles = "", nil
		if len(roles) > 0 {
			member.Role = roles[0]
		}
		if len(roles) > 1 {
			member.Roles = roles[1:]
		}
	}
}
