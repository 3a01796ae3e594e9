package v1beta1

import (
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// SetDefaultsProject sets the defaults of a Project. Its creator and owner are set at admission.
func SetDefaultsProject(project *Project) {
	for i := range project.Spec.Members {
		member := &project.Spec.Members[i]
		switch {
		case member.Role != "":
		case len(member.Roles) == 0:
			member.Role = constants.ProjectMemberViewer
		default:
			member.Role, member.Roles = member.Roles[0], member.Roles[1:]
		}
	}
	if ptr.Deref(project.Spec.Namespace, "") != constants.GardenNamespace {
		return
	}
	if project.Spec.Tolerations == nil {
		project.Spec.Tolerations = &ProjectTolerations{}
	}
	tolerations := project.Spec.Tolerations
	tolerations.Defaults = withToleration(tolerations.Defaults, constants.TaintSeedProtected)
	tolerations.Whitelist = withToleration(tolerations.Whitelist, constants.TaintSeedProtected)
}
