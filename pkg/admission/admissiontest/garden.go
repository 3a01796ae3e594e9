// Package admissiontest runs cases for admission plugins: requests with the objects that exist, and the outcomes of Gardener's API
// server for them.
package admissiontest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// NewGarden returns the facts about a garden with objects. Their ClusterRoles and ClusterRoleBindings say what users may do.
func NewGarden(objects []runtime.Object, now time.Time) *admission.Garden {
	live := liveClient(objects)
	return &admission.Garden{
		BackupBuckets:           only[*gardencorev1beta1.BackupBucket](objects),
		CloudProfiles:           only[*gardencorev1beta1.CloudProfile](objects),
		ClusterOIDCPresets:      only[*settingsv1alpha1.ClusterOpenIDConnectPreset](objects),
		ControllerRegistrations: only[*gardencorev1beta1.ControllerRegistration](objects),
		CredentialsBindings:     only[*securityv1alpha1.CredentialsBinding](objects),
		ExposureClasses:         only[*gardencorev1beta1.ExposureClass](objects),
		ManagedSeeds:            only[*seedmanagementv1alpha1.ManagedSeed](objects),
		NamespacedCloudProfiles: only[*gardencorev1beta1.NamespacedCloudProfile](objects),
		OIDCPresets:             only[*settingsv1alpha1.OpenIDConnectPreset](objects),
		Projects:                only[*gardencorev1beta1.Project](objects),
		Quotas:                  only[*gardencorev1beta1.Quota](objects),
		SecretBindings:          only[*gardencorev1beta1.SecretBinding](objects),
		Seeds:                   only[*gardencorev1beta1.Seed](objects),
		Shoots:                  only[*gardencorev1beta1.Shoot](objects),
		WorkloadIdentities:      only[*securityv1alpha1.WorkloadIdentity](objects),
		Secret: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			return only[*corev1.Secret](objects).Get(ctx, namespace, name)
		},
		Live: live, Kube: live,
		Authorizer: authorizer.AuthorizerFunc(roles(objects).authorize), Now: func() time.Time { return now },
	}
}

// liveClient returns a client for objects; the last one wins if several have a name. It knows the scopes of some kinds of
// Kubernetes.
func liveClient(objects []runtime.Object) client.Client {
	last := map[string]client.Object{}
	for _, object := range objects {
		if typed, ok := object.(client.Object); ok {
			last[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(typed))] = typed
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(slices.Collect(maps.Values(last))...).Build()
}

// Objects are the objects of one kind by namespace and name.
type Objects[T client.Object] map[client.ObjectKey]T

func only[T client.Object](objects []runtime.Object) Objects[T] {
	found := Objects[T]{}
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			found[client.ObjectKeyFromObject(typed)] = typed
		}
	}
	return found
}

// Get implements admission.Reader.
func (o Objects[T]) Get(_ context.Context, namespace, name string) (T, error) {
	object, found := o[client.ObjectKey{Namespace: namespace, Name: name}]
	if !found {
		return object, apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	return object, nil
}

// By implements admission.Reader.
func (o Objects[T]) By(_ context.Context, index admission.Index[T], key string) ([]T, error) {
	var found []T
	for _, object := range o {
		if slices.Contains(index.Keys(object), key) {
			found = append(found, object)
		}
	}
	return found, nil
}

// LiveBy implements admission.Reader.
func (o Objects[T]) LiveBy(ctx context.Context, index admission.Index[T], key string) ([]T, error) {
	return o.By(ctx, index, key)
}

// roles decides with the ClusterRoles among objects. The group system:masters may do everything.
type roles []runtime.Object

func (r roles) authorize(_ context.Context, request authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(request.GetUser().GetGroups(), "system:masters") {
		return authorizer.DecisionAllow, "", nil
	}
	bound := map[string]bool{}
	for _, object := range r {
		if binding, ok := object.(*rbacv1.ClusterRoleBinding); ok {
			for _, subject := range binding.Subjects {
				bound[binding.RoleRef.Name] = bound[binding.RoleRef.Name] || subject.Name == request.GetUser().GetName()
			}
		}
	}
	resource := request.GetResource()
	if request.GetSubresource() != "" {
		resource += "/" + request.GetSubresource()
	}
	for _, object := range r {
		if role, ok := object.(*rbacv1.ClusterRole); ok && bound[role.Name] && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return covers(rule.Verbs, request.GetVerb()) && covers(rule.APIGroups, request.GetAPIGroup()) && covers(rule.Resources, resource)
		}) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func covers(values []string, value string) bool {
	return slices.Contains(values, "*") || slices.Contains(values, value)
}
