package controllermanager

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// bindsExtensions checks that a ClusterRole with a label is bound to the selected ServiceAccounts in namespaces of Seeds, and that
// the policies of the chart refuse everything else.
func (p *projects) bindsExtensions() {
	const seedNamespace = "seed-with-extensions"
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedNamespace}})
	account := func(namespace, name, app string) *corev1.ServiceAccount {
		made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
		p.create(made)
		return made
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "dns-for-seeds", Labels: map[string]string{constants.LabelCustomExtensionsPermissions: "true"},
		Annotations: map[string]string{constants.AnnotationExtensionsServiceAccountSelector: `{"matchLabels":{"app":"dns"}}`},
	}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"dns.example.org"}, Resources: []string{"zones"}, Verbs: []string{"list"}}}}
	first, other := account(seedNamespace, "first", "dns"), account(seedNamespace, "other", "other")
	account("kube-system", "first", "dns")
	p.create(role)
	p.eventuallyBound(role.Name, first)
	later := account("garden", "extension-shoot--dev--a--dns", "dns")
	p.eventuallyBound(role.Name, later, first)
	kit.Change(p, p.client, other, func() { other.Labels["app"] = "dns" })
	p.eventuallyBound(role.Name, later, first, other)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}}
	kit.EventuallyTrue(p, "a subject is added by hand", func() bool {
		kit.Must(p, p.client.Get(p.Context(), client.ObjectKeyFromObject(binding), binding))
		binding.Subjects = append(binding.Subjects, subject("eve"))
		return p.client.Update(p.Context(), binding) == nil
	})
	p.eventuallyBound(role.Name, later, first, other)
	for _, deleted := range []client.Object{later, other} {
		kit.Must(p, p.client.Delete(p.Context(), deleted))
	}
	p.eventuallyBound(role.Name, first)
	p.bindsNothingElse(role.Name)
	kit.Change(p, p.client, role, func() { role.Labels = nil })
	kit.EventuallyTrue(p, "the binding is deleted", func() bool { return !p.exists(binding) })
	kit.Must(p, p.client.Delete(p.Context(), role))
}

// eventuallyBound waits until a ClusterRole is bound to exactly these ServiceAccounts.
func (p *projects) eventuallyBound(role string, accounts ...*corev1.ServiceAccount) {
	p.Helper()
	var want []rbacv1.Subject
	for _, account := range accounts {
		want = append(want, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name})
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}}
	kit.Eventually(p, "the ClusterRole is bound to the selected ServiceAccounts", func() string {
		if p.exists(binding) && fmt.Sprint(binding.Subjects) == fmt.Sprint(want) {
			return ""
		}
		return fmt.Sprintf("%+v", binding)
	})
}

// bindsNothingElse checks that the controller-manager can bind neither ClusterRoles without the label, nor to others.
func (p *projects) bindsNothingElse(marked string) {
	manager := p.as(user)
	binding := func(role string, of rbacv1.Subject, labels map[string]string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role, Labels: labels}, Subjects: []rbacv1.Subject{of},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
	}
	mark := map[string]string{constants.LabelCustomExtensionsPermissions: "true"}
	own := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "seed-a", Name: "extension"}
	foreign := own
	foreign.Namespace = "kube-system"
	for what, test := range map[string]struct {
		binding *rbacv1.ClusterRoleBinding
		message string
	}{
		"a ClusterRole without the label": {binding("view", own, mark), "the ClusterRole does not have the label"},
		"a binding without the label":     {binding(marked, own, nil), "binds ClusterRoles of extensions to their ServiceAccounts"},
		"another namespace":               {binding(marked, foreign, mark), "binds ClusterRoles of extensions to their ServiceAccounts"},
		"a user":                          {binding(marked, subject("eve"), mark), "binds ClusterRoles of extensions to their ServiceAccounts"},
	} {
		kit.Eventually(p, what+" is refused", func() string {
			err := manager.Create(p.Context(), test.binding.DeepCopy(), client.DryRunAll)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.message) {
				return kit.TextOf(err)
			}
			return ""
		})
	}
	kit.Eventually(p, "the ClusterRole with the label can be bound", func() string {
		live := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: marked}}
		if !p.exists(live) {
			return "the binding does not exist"
		}
		return kit.TextOf(manager.Update(p.Context(), live, client.DryRunAll))
	})
}
