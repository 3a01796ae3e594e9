// Package shootquotavalidator is an admission plugin of the garden's API. The Shoots of credentials with quotas do not use more than
// these allow, and do not live longer.
package shootquotavalidator

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const day = 24 * time.Hour

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootQuotaValidator",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validate)},
	},
}

func validate(ctx context.Context, _ *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	grown, extended := old == nil || grows(&shoot.Spec, &old.Spec), extends(shoot, old)
	if shoot.DeletionTimestamp != nil || !grown && !extended {
		return nil
	}
	quotas, err := quotasOf(ctx, garden, shoot)
	if err != nil {
		return err
	}
	if extended {
		if err := checkLifetime(shoot.Annotations[constants.AnnotationShootExpirationTimestamp], quotas, garden.Now()); err != nil {
			return err
		}
	}
	if !grown {
		return nil
	}
	for _, quota := range quotas {
		if err := checkQuota(ctx, garden, shoot, quota); err != nil {
			return err
		}
	}
	return nil
}

// quotasOf returns the quotas of the binding of a Shoot. A binding or a quota that does not exist refuses the request, because
// the limits are not known.
func quotasOf(ctx context.Context, garden *admission.Garden, shoot *gardencorev1beta1.Shoot) ([]*gardencorev1beta1.Quota, error) {
	var references []corev1.ObjectReference
	var name string
	var err error
	switch {
	case shoot.Spec.CredentialsBindingName != nil:
		name = *shoot.Spec.CredentialsBindingName
		binding, failed := garden.CredentialsBindings.Get(ctx, shoot.Namespace, name)
		if err = failed; err == nil {
			references = binding.Quotas
		}
	case shoot.Spec.SecretBindingName != nil:
		name = *shoot.Spec.SecretBindingName
		binding, failed := garden.SecretBindings.Get(ctx, shoot.Namespace, name)
		if err = failed; err == nil {
			references = binding.Quotas
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the binding %q of the Shoot does not exist", name)
	}
	if err != nil {
		return nil, err
	}
	var quotas []*gardencorev1beta1.Quota
	for _, reference := range references {
		namespace := cmp.Or(reference.Namespace, shoot.Namespace)
		quota, err := garden.Quotas.Get(ctx, namespace, reference.Name)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the Quota %s/%s of the binding %q does not exist", namespace, reference.Name, name)
		}
		if err != nil {
			return nil, err
		}
		quotas = append(quotas, quota)
	}
	return quotas, nil
}

// checkLifetime returns an error if a Shoot would live longer than its quotas allow from now on.
func checkLifetime(expiration string, quotas []*gardencorev1beta1.Quota, now time.Time) error {
	var lifetime *int32
	for _, quota := range quotas {
		if days := quota.Spec.ClusterLifetimeDays; days != nil && (lifetime == nil || *days < *lifetime) {
			lifetime = days
		}
	}
	if lifetime == nil {
		return nil
	}
	planned, err := time.Parse(time.RFC3339, expiration)
	if err != nil {
		return fmt.Errorf("the annotation %s must be a time such as 2030-01-02T15:04:05Z: %w", constants.AnnotationShootExpirationTimestamp, err)
	}
	if latest := now.Add(time.Duration(*lifetime) * day); planned.After(latest) {
		return fmt.Errorf("the annotation %s must not be after %s, because the quota allows %d days from now on",
			constants.AnnotationShootExpirationTimestamp, latest.UTC().Format(time.RFC3339), *lifetime)
	}
	return nil
}

// checkQuota returns an error if a Shoot and the others with the same quota use more than it allows. It reads the Shoots live,
// because two API servers must not both admit the last one.
func checkQuota(ctx context.Context, garden *admission.Garden, shoot *gardencorev1beta1.Shoot, quota *gardencorev1beta1.Quota) error {
	shoots, err := shootsWith(ctx, garden, quota, shoot)
	if err != nil {
		return err
	}
	used := corev1.ResourceList{}
	for _, one := range append(shoots, shoot) {
		profile, err := garden.ProfileOf(ctx, one.Namespace, &one.Spec)
		if admission.IsStatus(err) {
			return err
		}
		if err == nil {
			err = addUsage(used, &one.Spec, profile.Spec)
		}
		if err != nil {
			return fmt.Errorf("the resources of the Shoot %s/%s are unknown: %w", one.Namespace, one.Name, err)
		}
	}
	if exceeded := exceeds(used, quota.Spec.Metrics); len(exceeded) > 0 {
		return fmt.Errorf("quota limits exceeded. Unable to allocate further %s: the Quota %s/%s allows less than the Shoots with it would use",
			strings.Join(exceeded, ", "), quota.Namespace, quota.Name)
	}
	return nil
}

// shootsWith returns the other Shoots whose bindings have a quota: those of the namespace if it is for a Project.
func shootsWith(ctx context.Context, garden *admission.Garden, quota *gardencorev1beta1.Quota, own *gardencorev1beta1.Shoot) ([]*gardencorev1beta1.Shoot, error) {
	keys, err := bindingsWith(ctx, garden, quota)
	if err != nil {
		return nil, err
	}
	namespace := ""
	if isOfProject(quota) {
		namespace = own.Namespace
	}
	list := &gardencorev1beta1.ShootList{}
	if err := garden.ListLive(ctx, list, namespace); err != nil {
		return nil, err
	}
	var shoots []*gardencorev1beta1.Shoot
	for i := range list.Items {
		shoot := &list.Items[i]
		for _, key := range admission.ShootsByBinding.Keys(shoot) {
			if keys.Has(key) && (shoot.Namespace != own.Namespace || shoot.Name != own.Name) {
				shoots = append(shoots, shoot)
			}
		}
	}
	return shoots, nil
}
