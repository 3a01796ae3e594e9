// Package projectuse decides what uses the namespace of a Project: Shoots and BackupEntries in it, and Shoots anywhere whose bindings
// refer to credentials or Quotas in it.
package projectuse

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Index is the index of Projects by their namespaces. The API server supports it as a field selector with the same name.
const Index = "spec.namespace"

// ByNamespace is that index of the cache.
func ByNamespace() controller.Index {
	return controller.Index{Object: &corev1beta1.Project{}, Field: Index, Values: func(object client.Object) []string {
		project, ok := object.(*corev1beta1.Project)
		if !ok || project.Spec.Namespace == nil {
			return nil
		}
		return []string{*project.Spec.Namespace}
	}}
}

// Keep keeps the fields of a Shoot that say which binding it uses, for a cache.
func Keep(kept, shoot *corev1beta1.Shoot) {
	intern := func(name *string) *string {
		if name == nil {
			return nil
		}
		return ptr.To(cachetransform.Intern(*name))
	}
	kept.Spec.SecretBindingName, kept.Spec.CredentialsBindingName = intern(shoot.Spec.SecretBindingName), intern(shoot.Spec.CredentialsBindingName)
}

// Rights are the rights to read what [Of] reads.
func Rights() []controller.Right {
	const purpose = "what uses the namespace of a Project"
	return []controller.Right{
		controller.May(purpose, corev1beta1.GroupName, []string{"shoots", "backupentries", "secretbindings"}, controller.Reads()...),
		controller.May(purpose, securityv1alpha1.GroupName, []string{"credentialsbindings"}, controller.Reads()...),
	}
}

// Use is what uses a namespace. The texts are for people: kind, namespace and name.
type Use struct {
	// Shoots in the namespace.
	Shoots []string
	// Others are the BackupEntries in the namespace, and Shoots in other namespaces with credentials or Quotas of the namespace.
	Others []string
}

// Of returns what uses a namespace, as far as the reader knows.
func Of(ctx context.Context, reader client.Reader, namespace string) (Use, error) {
	var (
		shoots      corev1beta1.ShootList
		entries     corev1beta1.BackupEntryList
		secrets     corev1beta1.SecretBindingList
		credentials securityv1alpha1.CredentialsBindingList
	)
	if err := errors.Join(
		reader.List(ctx, &shoots, client.InNamespace(namespace)), reader.List(ctx, &entries, client.InNamespace(namespace)),
		reader.List(ctx, &secrets), reader.List(ctx, &credentials),
	); err != nil {
		return Use{}, fmt.Errorf("read what uses namespace %s: %w", namespace, err)
	}
	var use Use
	for i := range shoots.Items {
		use.Shoots = append(use.Shoots, "Shoot "+client.ObjectKeyFromObject(&shoots.Items[i]).String())
	}
	for i := range entries.Items {
		use.Others = append(use.Others, "BackupEntry "+client.ObjectKeyFromObject(&entries.Items[i]).String())
	}
	foreign := referring(namespace, secrets.Items, credentials.Items)
	for in, bindings := range foreign {
		var others corev1beta1.ShootList
		if err := reader.List(ctx, &others, client.InNamespace(in)); err != nil {
			return Use{}, fmt.Errorf("read the Shoots in namespace %s, which may have credentials of namespace %s: %w", in, namespace, err)
		}
		for i := range others.Items {
			if binding := bindings.of(&others.Items[i]); binding != "" {
				use.Others = append(use.Others, fmt.Sprintf("Shoot %s (with %s)", client.ObjectKeyFromObject(&others.Items[i]), binding))
			}
		}
	}
	return use, nil
}

// names are the names of bindings in one namespace.
type names struct{ secrets, credentials map[string]bool }

// of returns the binding that a Shoot uses, for people; empty if it is not among the names.
func (n *names) of(shoot *corev1beta1.Shoot) string {
	if name := ptr.Deref(shoot.Spec.SecretBindingName, ""); n.secrets[name] {
		return "SecretBinding " + name
	}
	if name := ptr.Deref(shoot.Spec.CredentialsBindingName, ""); n.credentials[name] {
		return "CredentialsBinding " + name
	}
	return ""
}

// referring returns the bindings in other namespaces, by namespace, that refer to credentials or Quotas in a namespace. Shoots that
// use bindings in the namespace itself are in it, too.
func referring(namespace string, secrets []corev1beta1.SecretBinding, credentials []securityv1alpha1.CredentialsBinding) map[string]*names {
	found := map[string]*names{}
	of := func(binding client.Object) *names {
		if found[binding.GetNamespace()] == nil {
			found[binding.GetNamespace()] = &names{secrets: map[string]bool{}, credentials: map[string]bool{}}
		}
		return found[binding.GetNamespace()]
	}
	for i := range secrets {
		if one := &secrets[i]; one.Namespace != namespace && (one.SecretRef.Namespace == namespace || anyIn(namespace, one.Quotas)) {
			of(one).secrets[one.Name] = true
		}
	}
	for i := range credentials {
		if one := &credentials[i]; one.Namespace != namespace && (one.CredentialsRef.Namespace == namespace || anyIn(namespace, one.Quotas)) {
			of(one).credentials[one.Name] = true
		}
	}
	return found
}

func anyIn(namespace string, references []corev1.ObjectReference) bool {
	for _, reference := range references {
		if reference.Namespace == namespace {
			return true
		}
	}
	return false
}
