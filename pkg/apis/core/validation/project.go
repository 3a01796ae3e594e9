package validation

import (
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// maxProjectName leaves room for the name of a Shoot in names that contain both.
	maxProjectName = 10
	// maxExtensionRole is the maximum length of the part after the prefix in a role of an API extension.
	maxExtensionRole = 20
	// serviceAccountUser is the prefix of the user names of service accounts.
	serviceAccountUser = "system:serviceaccount:"
)

var describing = regexp.MustCompile(`^[\pL\pN\s.,:\-_/\\]+$`)

// ValidateProject checks a Project.
func ValidateProject(project *v1beta1.Project) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&project.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	at := field.NewPath("metadata", "name")
	if len(project.Name) > maxProjectName {
		errs = append(errs, field.TooLong(at, project.Name, maxProjectName))
	}
	errs = append(errs, withoutTwoHyphens(project.Name, at)...)
	return append(errs, validateProjectSpec(&project.Spec, field.NewPath("spec"))...)
}

// ValidateProjectUpdate checks a Project that replaces another.
func ValidateProjectUpdate(project, old *v1beta1.Project) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&project.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, immutableOnceSet(project.Spec.CreatedBy, old.Spec.CreatedBy, path.Child("createdBy"))...)
	errs = append(errs, immutableOnceSet(project.Spec.Namespace, old.Spec.Namespace, path.Child("namespace"))...)
	if old.Spec.Owner != nil && project.Spec.Owner == nil {
		errs = append(errs, field.Required(path.Child("owner"), "the owner can be replaced, but not removed"))
	}
	return append(errs, ValidateProject(project)...)
}

// ValidateProjectStatusUpdate checks the status of a Project that replaces another.
func ValidateProjectStatusUpdate(project, old *v1beta1.Project) field.ErrorList {
	if old.Status.Phase != "" && project.Status.Phase == "" {
		return field.ErrorList{field.Forbidden(field.NewPath("status", "phase"), "the phase cannot be emptied")}
	}
	return nil
}

func validateProjectSpec(spec *v1beta1.ProjectSpec, path *field.Path) field.ErrorList {
	errs := validateDescription(spec.Description, path.Child("description"))
	errs = append(errs, validateDescription(spec.Purpose, path.Child("purpose"))...)
	errs = append(errs, validateProjectNamespace(spec.Namespace, path.Child("namespace"))...)
	if spec.Owner != nil {
		errs = append(errs, validateSubject(*spec.Owner, path.Child("owner"))...)
	}
	if spec.CreatedBy != nil {
		errs = append(errs, validateSubject(*spec.CreatedBy, path.Child("createdBy"))...)
	}
	errs = append(errs, validateMembers(spec.Members, path.Child("members"))...)
	if spec.Tolerations != nil {
		errs = append(errs, validateProjectTolerations(spec.Tolerations, path.Child("tolerations"))...)
	}
	at := path.Child("dualApprovalForDeletion")
	errs = append(errs, unique(spec.DualApprovalForDeletion, at, "resource",
		func(one v1beta1.DualApprovalForDeletion) string { return one.Resource })...)
	for i, approval := range spec.DualApprovalForDeletion {
		errs = append(errs, oneOf(approval.Resource, at.Index(i).Child("resource"), "shoots")...)
		errs = append(errs, selector(&approval.Selector, at.Index(i).Child("selector"))...)
	}
	return errs
}

func validateDescription(text *string, path *field.Path) field.ErrorList {
	if errs := notEmpty(text, path); text == nil || errs != nil {
		return errs
	}
	if !describing.MatchString(*text) {
		return field.ErrorList{field.Invalid(path, *text, `must have letters, digits, white space and .,:-_/\ only`)}
	}
	return nil
}

func validateProjectNamespace(namespace *string, path *field.Path) field.ErrorList {
	if namespace == nil {
		return nil
	}
	errs := namespaceName(*namespace, path)
	reserved := []string{constants.SystemSeedLeaseNamespace, constants.SystemShootIssuerNamespace, constants.SystemPublicNamespace}
	switch {
	case slices.Contains(reserved, *namespace):
		errs = append(errs, field.Invalid(path, *namespace, "is reserved for the garden"))
	case *namespace != constants.GardenNamespace && !strings.HasPrefix(*namespace, constants.PrefixProjectNamespace):
		errs = append(errs, field.Invalid(path, *namespace, "must be garden or begin with garden-"))
	}
	return errs
}

func validateSubject(subject rbacv1.Subject, path *field.Path) field.ErrorList {
	errs := required(subject.Name, path.Child("name"))
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		if subject.Name != "" {
			errs = append(errs, messages(apivalidation.ValidateServiceAccountName(subject.Name, false), subject.Name, path.Child("name"))...)
		}
		errs = append(errs, required(subject.Namespace, path.Child("namespace"))...)
		if subject.APIGroup != "" {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{""}))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		errs = append(errs, forbidden(subject.Namespace != "", path.Child("namespace"), "users and groups have no namespace")...)
		if account, is := strings.CutPrefix(subject.Name, serviceAccountUser); is && subject.Kind == rbacv1.UserKind {
			if namespace, name, found := strings.Cut(account, ":"); !found || namespace == "" || name == "" {
				errs = append(errs, field.Invalid(path.Child("name"), subject.Name, "must be "+serviceAccountUser+"<namespace>:<name>"))
			}
		}
		if subject.APIGroup != "" && subject.APIGroup != rbacv1.GroupName {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{rbacv1.GroupName}))
		}
	default:
		kinds := []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}
		errs = append(errs, field.NotSupported(path.Child("kind"), subject.Kind, kinds))
	}
	return errs
}

func validateMembers(members []v1beta1.ProjectMember, path *field.Path) field.ErrorList {
	errs := unique(members, path, "", func(member v1beta1.ProjectMember) string { return identityOf(member.Subject) })
	owners := 0
	for i, member := range members {
		at := path.Index(i)
		errs = append(errs, validateSubject(member.Subject, at)...)
		roles := append([]string{member.Role}, member.Roles...)
		seen := map[string]bool{}
		for j, role := range roles {
			where := at.Child("role")
			if j > 0 {
				where = at.Child("roles").Index(j - 1)
			}
			if seen[role] {
				errs = append(errs, field.Duplicate(where, role))
			}
			seen[role] = true
			errs = append(errs, validateRole(role, where)...)
		}
		if seen[constants.ProjectMemberOwner] {
			if owners++; owners > 1 {
				errs = append(errs, field.Forbidden(at, "there can be one owner only"))
			}
		}
	}
	return errs
}

// identityOf returns the identity of a subject. A user with the name of a service account is that service account.
func identityOf(subject rbacv1.Subject) string {
	if parts := strings.Split(subject.Name, ":"); subject.Kind == rbacv1.UserKind && len(parts) == 4 &&
		strings.HasPrefix(subject.Name, serviceAccountUser) {
		return strings.Join([]string{"", rbacv1.ServiceAccountKind, parts[2], parts[3]}, "|")
	}
	return strings.Join([]string{"", subject.Kind, subject.Namespace, subject.Name}, "|")
}

func validateRole(role string, path *field.Path) field.ErrorList {
	if name, is := strings.CutPrefix(role, constants.PrefixProjectMemberExtension); is {
		if len(name) > maxExtensionRole {
			return field.ErrorList{field.TooLong(path, role, len(constants.PrefixProjectMemberExtension)+maxExtensionRole)}
		}
		return dnsLabel(name, path)
	}
	return oneOf(role, path, constants.ProjectMemberOwner, constants.ProjectMemberAdmin, constants.ProjectMemberViewer,
		constants.ProjectMemberUserAccessManager, constants.ProjectMemberServiceAccountManager)
}

func validateProjectTolerations(given *v1beta1.ProjectTolerations, path *field.Path) field.ErrorList {
	errs := tolerations(given.Defaults, path.Child("defaults"))
	errs = append(errs, tolerations(given.Whitelist, path.Child("whitelist"))...)
	for i, toleration := range given.Defaults {
		if !slices.ContainsFunc(given.Whitelist, func(allowed v1beta1.Toleration) bool { return covers(allowed, toleration) }) {
			errs = append(errs, field.Forbidden(path.Child("defaults").Index(i), "the whitelist does not have it"))
		}
	}
	return errs
}

// covers reports whether an allowed toleration covers another one. An allowed toleration without a value covers all
// values.
func covers(allowed, toleration v1beta1.Toleration) bool {
	if allowed.Key != toleration.Key {
		return false
	}
	return allowed.Value == nil || toleration.Value != nil && *allowed.Value == *toleration.Value
}
