// Package extensionvalidator is an admission plugin of the garden's API. The types of extensions that an object names are
// registered, so that no object waits for an extension that does not exist.
package extensionvalidator

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ExtensionValidator",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("backupbuckets"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validateBucket)},
		{Resource: gardencorev1beta1.Resource("backupentries"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validateEntry)},
		{Resource: gardencorev1beta1.Resource("seeds"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validateSeed)},
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validateShoot)},
	},
}

func validateBucket(ctx context.Context, _ *admission.Request, garden *admission.Garden, bucket, old *gardencorev1beta1.BackupBucket) error {
	var before []requirement
	if old != nil {
		before = ofBucket(old)
	}
	return check(ctx, garden, bucket, ofBucket(bucket), before)
}

func validateEntry(ctx context.Context, _ *admission.Request, garden *admission.Garden, entry, old *gardencorev1beta1.BackupEntry) error {
	if entry.DeletionTimestamp != nil || old != nil && old.Spec.BucketName == entry.Spec.BucketName {
		return nil
	}
	bucket, err := garden.BackupBuckets.Get(ctx, "", entry.Spec.BucketName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("spec.bucketName: the BackupBucket %q does not exist", entry.Spec.BucketName)
	}
	if err != nil {
		return err
	}
	return check(ctx, garden, entry, []requirement{
		{kind: gardencorev1beta1.KindBackupEntry, typed: bucket.Spec.Provider.Type, field: "spec.provider.type of the BackupBucket", what: "provider"},
	}, nil)
}

func validateSeed(ctx context.Context, _ *admission.Request, garden *admission.Garden, seed, old *gardencorev1beta1.Seed) error {
	var before []requirement
	if old != nil {
		if equality.Semantic.DeepEqual(seed.Spec, old.Spec) {
			return nil
		}
		before = ofSeed(&old.Spec)
	}
	return check(ctx, garden, seed, ofSeed(&seed.Spec), before)
}

func validateShoot(ctx context.Context, _ *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	var before []requirement
	if old != nil {
		if equality.Semantic.DeepEqual(shoot.Spec, old.Spec) {
			return nil
		}
		before = ofShoot(&old.Spec)
	}
	return check(ctx, garden, shoot, ofShoot(&shoot.Spec), before)
}

// check returns an error for each requirement that the stored object does not have and no registration fulfils.
func check(ctx context.Context, garden *admission.Garden, object metav1.Object, requirements, before []requirement) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	var errs field.ErrorList
	for i, wanted := range requirements {
		if wanted.among(before) || wanted.among(requirements[:i]) {
			continue
		}
		registered, err := isRegistered(ctx, garden, wanted)
		if err != nil {
			return err
		}
		if !registered {
			errs = append(errs, wanted.refused(fmt.Sprintf("%T", object)))
		}
	}
	return admission.Forbidden(errs)
}

// isRegistered asks the memory first, and reads live before it finds nothing.
func isRegistered(ctx context.Context, garden *admission.Garden, wanted requirement) (bool, error) {
	key := admission.Key(wanted.kind, wanted.typed)
	for _, read := range []func(context.Context, admission.Index[*gardencorev1beta1.ControllerRegistration], string) ([]*gardencorev1beta1.ControllerRegistration, error){
		garden.ControllerRegistrations.By, garden.ControllerRegistrations.LiveBy,
	} {
		registrations, err := read(ctx, admission.ControllerRegistrationsByResource, key)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(registrations, wanted.fulfilledBy) {
			return true, nil
		}
	}
	return false, nil
}

func (r requirement) fulfilledBy(registration *gardencorev1beta1.ControllerRegistration) bool {
	return slices.ContainsFunc(registration.Spec.Resources, func(resource gardencorev1beta1.ControllerResource) bool {
		compatible := r.cluster == "" || len(resource.ClusterCompatibility) == 0 || slices.Contains(resource.ClusterCompatibility, r.cluster)
		return resource.Kind == r.kind && resource.Type == r.typed && ptr.Deref(resource.Primary, true) && compatible &&
			(!r.workerless || ptr.Deref(resource.WorkerlessSupported, false))
	})
}
