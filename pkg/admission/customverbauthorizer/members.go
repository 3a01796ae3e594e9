package customverbauthorizer

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// membersChanged reports whether a user who does not own a Project changes its owner, or the persons among its members or
// their roles. The first owner is free. Owners may be added to the members by anyone.
func membersChanged(updated, old *gardencorev1beta1.ProjectSpec, of user.Info) bool {
	owner := old.Owner
	if owner == nil {
		owner = updated.Owner
	}
	if isOwner(of, owner) {
		return false
	}
	if old.Owner != nil && (updated.Owner == nil || *updated.Owner != *old.Owner) {
		return true
	}
	return !maps.Equal(persons(updated, updated.Owner), persons(old, updated.Owner))
}

// persons returns the roles of the members that are not service accounts, without the owner.
func persons(spec *gardencorev1beta1.ProjectSpec, owner *rbacv1.Subject) map[rbacv1.Subject]string {
	found := map[rbacv1.Subject]string{}
	for _, member := range spec.Members {
		isAccount := member.Kind == rbacv1.ServiceAccountKind ||
			member.Kind == rbacv1.UserKind && strings.HasPrefix(member.Name, serviceaccount.ServiceAccountUsernamePrefix)
		if isAccount || owner != nil && member.Subject == *owner {
			continue
		}
		roles := append([]string{member.Role}, member.Roles...)
		slices.Sort(roles)
		found[member.Subject] = strings.Join(slices.Compact(roles), ",")
	}
	return found
}

func isOwner(of user.Info, owner *rbacv1.Subject) bool {
	if owner == nil {
		return false
	}
	switch owner.Kind {
	case rbacv1.UserKind:
		return of.GetName() == owner.Name
	case rbacv1.GroupKind:
		return slices.Contains(of.GetGroups(), owner.Name)
	case rbacv1.ServiceAccountKind:
		return of.GetName() == serviceaccount.MakeUsername(owner.Namespace, owner.Name)
	default:
		return false
	}
}
