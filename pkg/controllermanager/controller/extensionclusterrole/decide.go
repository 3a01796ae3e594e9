package extensionclusterrole

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// prefixShootExtension is the prefix of the names of ServiceAccounts that extensions of self-hosted Shoots use.
const prefixShootExtension = "extension-shoot--"

// Eligible reports whether a ServiceAccount of the garden belongs to an extension: all of the namespaces of Seeds do, and in the
// namespaces of Projects those of extensions of self-hosted Shoots.
func Eligible(namespace, name string) bool {
	if strings.HasPrefix(namespace, constants.PrefixSeedNamespace) {
		return true
	}
	ofProject := namespace == constants.GardenNamespace || strings.HasPrefix(namespace, constants.GardenNamespace+"-")
	return ofProject && strings.HasPrefix(name, prefixShootExtension)
}

// selectorOf returns the selector of ServiceAccounts in the annotation of a ClusterRole.
func selectorOf(role metav1.Object) (labels.Selector, error) {
	const annotation = constants.AnnotationExtensionsServiceAccountSelector
	text, exists := role.GetAnnotations()[annotation]
	if !exists {
		return nil, fmt.Errorf("the annotation %s is missing: it must be a label selector in JSON", annotation)
	}
	var declared metav1.LabelSelector
	if err := json.Unmarshal([]byte(text), &declared); err != nil {
		return nil, fmt.Errorf("the annotation %s is not a label selector in JSON: %w", annotation, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&declared)
	if err != nil {
		return nil, fmt.Errorf("the annotation %s: %w", annotation, err)
	}
	return selector, nil
}

// Decide returns the binding that a ClusterRole should have. accounts are the ServiceAccounts of the garden.
func Decide(role metav1.Object, accounts []metav1.PartialObjectMetadata) (*rbacv1.ClusterRoleBinding, error) {
	selector, err := selectorOf(role)
	if err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: role.GetName(), Labels: map[string]string{constants.LabelCustomExtensionsPermissions: "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.GetName(), UID: role.GetUID(),
			}},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.GetName()},
	}
	for i := range accounts {
		account := &accounts[i]
		if account.DeletionTimestamp == nil && Eligible(account.Namespace, account.Name) && selector.Matches(labels.Set(account.Labels)) {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name})
		}
	}
	slices.SortFunc(binding.Subjects, func(a, b rbacv1.Subject) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return binding, nil
}

// same reports whether a binding is as wanted. roleRef cannot change, and follows from the name.
func same(live, wanted *rbacv1.ClusterRoleBinding) bool {
	return equality.Semantic.DeepEqual(live.Subjects, wanted.Subjects) && equality.Semantic.DeepEqual(live.OwnerReferences, wanted.OwnerReferences) &&
		live.Labels[constants.LabelCustomExtensionsPermissions] == "true"
}
