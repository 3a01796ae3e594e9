package resourcereferencemanager

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// binding is a SecretBinding or a CredentialsBinding.
type binding struct {
	kind, namespace, name string
	// types are the infrastructures.
	types       []string
	path        *field.Path
	credentials corev1.ObjectReference
	quotas      []corev1.ObjectReference
}

func ofSecretBinding(b *gardencorev1beta1.SecretBinding) *binding {
	if b == nil {
		return nil
	}
	found := &binding{
		kind: admission.KindSecretBinding, namespace: b.Namespace, name: b.Name, path: field.NewPath("secretRef"), quotas: b.Quotas,
		credentials: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: cmp.Or(b.SecretRef.Namespace, b.Namespace), Name: b.SecretRef.Name},
	}
	if b.Provider != nil {
		found.types = strings.Split(b.Provider.Type, ",")
	}
	return found
}

func ofCredentialsBinding(b *securityv1alpha1.CredentialsBinding) *binding {
	if b == nil {
		return nil
	}
	found := &binding{
		kind: admission.KindCredentialsBinding, namespace: b.Namespace, name: b.Name, path: field.NewPath("credentialsRef"), quotas: b.Quotas,
		credentials: b.CredentialsRef, types: []string{b.Provider.Type},
	}
	found.credentials.Namespace = cmp.Or(found.credentials.Namespace, b.Namespace)
	return found
}

func validateSecretBinding(ctx context.Context, request *admission.Request, garden *admission.Garden, b, old *gardencorev1beta1.SecretBinding) error {
	if b.DeletionTimestamp != nil {
		return nil
	}
	return validateBinding(&check{ctx: ctx, request: request, garden: garden}, ofSecretBinding(b), ofSecretBinding(old))
}

func validateCredentialsBinding(ctx context.Context, request *admission.Request, garden *admission.Garden, b, old *securityv1alpha1.CredentialsBinding) error {
	if b.DeletionTimestamp != nil {
		return nil
	}
	return validateBinding(&check{ctx: ctx, request: request, garden: garden}, ofCredentialsBinding(b), ofCredentialsBinding(old))
}

func validateBinding(c *check, b, old *binding) error {
	if old == nil || !slices.Equal(b.types, old.types) {
		c.shootsOf(b)
	}
	if old == nil || b.credentials != old.credentials || !slices.Equal(b.types, old.types) {
		c.credentials(b)
	}
	if old == nil || !equality.Semantic.DeepEqual(b.quotas, old.quotas) {
		c.quotas(b)
	}
	return c.result()
}

// shootsOf judges whether a binding is for the infrastructures of the Shoots that use it.
func (c *check) shootsOf(b *binding) {
	shoots, err := c.garden.Shoots.By(c.ctx, admission.ShootsByBinding, admission.BindingKey(b.kind, b.namespace, b.name))
	if err != nil {
		c.fail(err)
		return
	}
	for _, shoot := range shoots {
		if !slices.Contains(b.types, shoot.Spec.Provider.Type) {
			c.refuse(field.NewPath("provider", "type"), "must be %q, because the Shoot %q uses the binding", shoot.Spec.Provider.Type, shoot.Name)
			return
		}
	}
}

// credentials judges what a binding gives to Shoots.
func (c *check) credentials(b *binding) {
	reference := b.credentials
	group, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		c.refuse(b.path.Child("apiVersion"), "%v", err)
		return
	}
	kind := group.WithKind(reference.Kind)
	resource, _, err := c.garden.ResourceOf(kind)
	if err != nil {
		c.refuse(b.path.Child("kind"), "%v", err)
		return
	}
	if !c.readable(b.path, resource, reference.Namespace, reference.Name) || !c.exists(b.path, kind, reference.Namespace, reference.Name) {
		return
	}
	for _, provider := range b.types {
		c.identity(b.path, &reference, provider)
	}
}

// identity judges whether a WorkloadIdentity is for an infrastructure.
func (c *check) identity(path *field.Path, reference *corev1.ObjectReference, provider string) {
	err := c.garden.CheckIdentityType(c.ctx, reference, provider)
	if apierrors.IsServiceUnavailable(err) {
		c.fail(err)
	} else if err != nil {
		c.refuse(path, "%v", err)
	}
}

// quotas judges the quotas of a binding: at most one for the project, and one for the credentials.
func (c *check) quotas(b *binding) {
	scopes := map[bool]string{}
	for i, reference := range b.quotas {
		path, namespace := field.NewPath("quotas").Index(i), cmp.Or(reference.Namespace, b.namespace)
		if !c.readable(path, gardencorev1beta1.Resource("quotas"), namespace, reference.Name) {
			continue
		}
		quota, found := known(c, path, c.garden.Quotas, "Quota", namespace, reference.Name)
		if !found {
			continue
		}
		isOfProject := quota.Spec.Scope.Kind == "Project"
		if other := scopes[isOfProject]; other != "" {
			c.refuse(path, "the Quotas %q and %q have the same kind of scope, but only one of each kind can apply", other, quota.Name)
		}
		scopes[isOfProject] = quota.Name
	}
}
