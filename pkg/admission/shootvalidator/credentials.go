package shootvalidator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// checkCredentials checks the binding with the credentials for the infrastructure, if it changes. Whether a binding exists is the
// matter of another plugin, as long as no decision depends on it.
func checkCredentials(ctx context.Context, c *change) error {
	binding := ptr.Deref(c.shoot.Spec.CredentialsBindingName, "")
	if differs(c, func(spec *gardencorev1beta1.ShootSpec) string { return ptr.Deref(spec.SecretBindingName, "") }) {
		if err := c.secretBindingType(ctx); err != nil {
			return err
		}
	}
	if binding == "" || !differs(c, func(spec *gardencorev1beta1.ShootSpec) string { return ptr.Deref(spec.CredentialsBindingName, "") }) {
		return nil
	}
	found, err := c.garden.CredentialsBindings.Get(ctx, c.request.Namespace, binding)
	if apierrors.IsNotFound(err) {
		if c.old == nil {
			return nil
		}
		return fmt.Errorf("spec.credentialsBindingName: the CredentialsBinding %q does not exist", binding)
	}
	if err != nil {
		return err
	}
	if err := c.sameType("credentialsBindingName", binding, found.Provider.Type); err != nil || c.old == nil {
		return err
	}
	if before := ptr.Deref(c.old.Spec.SecretBindingName, ""); before != "" {
		return c.sameSecret(ctx, before, found)
	}
	return c.mayExchange(ctx, ptr.Deref(c.old.Spec.CredentialsBindingName, ""), found)
}

func (c *change) secretBindingType(ctx context.Context) error {
	name := ptr.Deref(c.shoot.Spec.SecretBindingName, "")
	if name == "" {
		return nil
	}
	found, err := c.garden.SecretBindings.Get(ctx, c.request.Namespace, name)
	if apierrors.IsNotFound(err) || err == nil && found.Provider == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return c.sameType("secretBindingName", name, found.Provider.Type)
}

// sameType checks that credentials are for the infrastructure of the Shoot.
func (c *change) sameType(field, binding, provider string) error {
	if own := c.shoot.Spec.Provider.Type; provider != own {
		return fmt.Errorf("spec.%s: the credentials of %q are for the type %q, but spec.provider.type is %q", field, binding, provider, own)
	}
	return nil
}

// sameSecret checks that a CredentialsBinding that replaces a SecretBinding has the same Secret.
func (c *change) sameSecret(ctx context.Context, before string, binding *securityv1alpha1.CredentialsBinding) error {
	old, err := c.garden.SecretBindings.Get(ctx, c.request.Namespace, before)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("spec.credentialsBindingName: the SecretBinding %q does not exist, so that its Secret cannot be compared", before)
	}
	if err != nil {
		return err
	}
	if to := binding.CredentialsRef; to.Kind != "Secret" || to.GroupVersionKind().Group != "" || to.Namespace != old.SecretRef.Namespace || to.Name != old.SecretRef.Name {
		return fmt.Errorf("spec.credentialsBindingName: a CredentialsBinding that replaces the SecretBinding %q must refer to the same Secret %s/%s first",
			before, old.SecretRef.Namespace, old.SecretRef.Name)
	}
	return nil
}

// mayExchange checks that the user may read the credentials before and after a change: who cannot read them could take over the
// machines of another account.
func (c *change) mayExchange(ctx context.Context, before string, binding *securityv1alpha1.CredentialsBinding) error {
	references := []corev1.ObjectReference{binding.CredentialsRef}
	if before != "" {
		old, err := c.garden.CredentialsBindings.Get(ctx, c.request.Namespace, before)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			references = append(references, old.CredentialsRef)
		}
	}
	for _, reference := range references {
		resource, known := resourcesOfCredentials[schema.GroupKind{Group: reference.GroupVersionKind().Group, Kind: reference.Kind}]
		if !known {
			return fmt.Errorf("spec.credentialsBindingName: the credentials are of the unknown kind %s", reference.GroupVersionKind())
		}
		may, err := c.garden.May(ctx, c.request.User, "get", resource, "", reference.Namespace, reference.Name)
		if err != nil {
			return err
		}
		if !may {
			return fmt.Errorf("spec.credentialsBindingName: to change the credentials, you need the right to read the old and the new ones, but not that to read %s %s/%s",
				reference.Kind, reference.Namespace, reference.Name)
		}
	}
	return nil
}

// resourcesOfCredentials are the kinds of credentials and their resources.
var resourcesOfCredentials = map[schema.GroupKind]schema.GroupResource{
	{Kind: "Secret"}: corev1.Resource("secrets"),
	{Group: gardencorev1beta1.GroupName, Kind: "InternalSecret"}:  gardencorev1beta1.Resource("internalsecrets"),
	{Group: securityv1alpha1.GroupName, Kind: "WorkloadIdentity"}: {Group: securityv1alpha1.GroupName, Resource: "workloadidentities"},
}
