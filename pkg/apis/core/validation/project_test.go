package validation_test

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestValidateProject(t *testing.T) {
	checkRules(t, "project", 0, v1beta1.SetDefaultsProject, ValidateProject, []rule{
		{"", "", ""},
		{"metadata/name", "elevenchars", "metadata.name TooLong"},
		{"metadata/name", "a--b", "metadata.name Invalid"},
		{"metadata/name", "Dev", "metadata.name Invalid"},
		{"spec/description", "''", "spec.description Invalid"},
		{"spec/description", "<b>", "spec.description Invalid"},
		{"spec/description", "'Größe: 3, a/b\\c_d-e.'", ""},
		{"spec/purpose", "a=b", "spec.purpose Invalid"},
		{"spec/namespace", "garden", ""},
		{"spec/namespace", "other", "spec.namespace Invalid"},
		{"spec/namespace", "gardener-system-public", "spec.namespace Invalid"},
		{"spec/owner/kind", "Robot", "spec.owner.kind NotSupported"},
		{"spec/owner/apiGroup", "other", "spec.owner.apiGroup NotSupported"},
		{"spec/owner/apiGroup", "", ""},
		{"spec/owner/apiGroup; spec/owner/kind", "; Group", ""},
		{"spec/owner/namespace", "a", "spec.owner.namespace Forbidden"},
		{"spec/owner/name", "system:serviceaccount:a", "spec.owner.name Invalid"},
		{"spec/owner/name", "'system:serviceaccount:a:'", "spec.owner.name Invalid"},
		{"spec/owner/name", "system:serviceaccount:a:b", ""},
		{"spec/owner/name", "''", "spec.owner.name Required"},
		{"spec/createdBy/name", "''", "spec.createdBy.name Required"},
		{"spec/members/1/name; spec/members/1/kind", "alice@example.org; User", "spec.members[1] Duplicate"},
		{"spec/members/1/name; spec/members/1/kind", "system:serviceaccount:garden-dev:robot; User", "spec.members[2] Duplicate"},
		{"spec/members/1/name; spec/members/1/kind; spec/members/1/apiGroup", "alice@example.org; User; ", "spec.members[1] Duplicate"},
		{"spec/members/1/role", "king", "spec.members[1].role NotSupported"},
		{"spec/members/1/role", "owner", "spec.members[1] Forbidden"},
		{"spec/members/0/roles/0", "admin", "spec.members[0].roles[0] Duplicate"},
		{"spec/members/2/role", "extension:this-is-longer-than-it-may-be", "spec.members[2].role TooLong"},
		{"spec/members/2/namespace", "", "spec.members[2].namespace Required"},
		{"spec/members/2/apiGroup", "rbac.authorization.k8s.io", "spec.members[2].apiGroup NotSupported"},
		{"spec/tolerations/defaults/0/key", "other", "spec.tolerations.defaults[0] Forbidden"},
		{"spec/tolerations/whitelist/0/value", "prod", "spec.tolerations.defaults[0] Forbidden"},
		{"spec/tolerations/whitelist/1", "{key: example.org/dedicated}", "spec.tolerations.whitelist[1] Duplicate"},
		{"spec/dualApprovalForDeletion/0/resource", "pods", "spec.dualApprovalForDeletion[0].resource NotSupported"},
		{"spec/dualApprovalForDeletion/0/selector", "{matchExpressions: [{key: a, operator: Like}]}", "spec.dualApprovalForDeletion[0].selector Invalid"},
		{"spec/dualApprovalForDeletion/1", "{resource: shoots, selector: {}}", "spec.dualApprovalForDeletion[1].resource Duplicate"},
	})
}

func TestValidateProjectUpdate(t *testing.T) {
	checkUpdates(t, "project", 0, v1beta1.SetDefaultsProject, ValidateProjectUpdate, []rule{
		{"", "", ""},
		{"spec/namespace", "garden-other", "spec.namespace Invalid"},
		{"spec/createdBy/name", "bob", "spec.createdBy Invalid"},
		{"spec/owner", "", "spec.owner Required"},
		{"spec/owner/name", "bob", ""},
	})
}

func TestValidateProjectStatusUpdate(t *testing.T) {
	ready := &v1beta1.Project{Status: v1beta1.ProjectStatus{Phase: v1beta1.ProjectReady}}
	compare(t, ValidateProjectStatusUpdate(&v1beta1.Project{}, ready), "status.phase Forbidden")
	compare(t, ValidateProjectStatusUpdate(ready, &v1beta1.Project{}), "")
}
