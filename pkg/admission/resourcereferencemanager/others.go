package resourcereferencemanager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

func validateSeed(ctx context.Context, request *admission.Request, garden *admission.Garden, seed, old *gardencorev1beta1.Seed) error {
	if seed.DeletionTimestamp != nil {
		return nil
	}
	if old == nil {
		old = &gardencorev1beta1.Seed{}
	}
	c := &check{ctx: ctx, request: request, garden: garden}
	c.resources(field.NewPath("spec", "resources"), constants.GardenNamespace, seed.Spec.Resources, old.Spec.Resources)
	return c.result()
}

// validateProject reads live, because two Projects with one namespace would share all that is in it.
func validateProject(ctx context.Context, request *admission.Request, garden *admission.Garden, project, old *gardencorev1beta1.Project) error {
	var before *string
	if old != nil {
		before = old.Spec.Namespace
	}
	namespace := changed(project.Spec.Namespace, before)
	if project.DeletionTimestamp != nil || namespace == "" {
		return nil
	}
	c := &check{ctx: ctx, request: request, garden: garden}
	others, err := garden.Projects.LiveBy(ctx, admission.ProjectsByNamespace, namespace)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Name != project.Name {
			c.refuse(field.NewPath("spec", "namespace"), "the namespace %q belongs to the Project %q", namespace, other.Name)
		}
	}
	return c.result()
}

func validateBucket(ctx context.Context, request *admission.Request, garden *admission.Garden, bucket, old *gardencorev1beta1.BackupBucket) error {
	if bucket.DeletionTimestamp != nil {
		return nil
	}
	if old == nil {
		old = &gardencorev1beta1.BackupBucket{}
	}
	c, path := &check{ctx: ctx, request: request, garden: garden}, field.NewPath("spec")
	if name := changed(bucket.Spec.SeedName, old.Spec.SeedName); name != "" {
		known(c, path.Child("seedName"), garden.Seeds, "Seed", "", name)
	}
	reference, before := bucket.Spec.CredentialsRef, old.Spec.CredentialsRef
	switch {
	case reference == nil && old.Name == "":
		c.refuse(path.Child("credentialsRef"), "must be set")
	case reference != nil && (before == nil || *before != *reference):
		c.backupCredentials(path.Child("credentialsRef"), reference)
	}
	return c.result()
}

func (c *check) backupCredentials(path *field.Path, reference *corev1.ObjectReference) {
	identity := securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity")
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
	if kind != secretKind && kind != identity {
		c.refuse(path, "must be a Secret or a WorkloadIdentity, not %s of %s", reference.Kind, reference.APIVersion)
		return
	}
	c.exists(path, kind, reference.Namespace, reference.Name)
}

// validateBucketDeletion reads live, because a deleted bucket takes the backups of all its entries with it.
func validateBucketDeletion(ctx context.Context, _ *admission.Request, garden *admission.Garden, _, bucket *gardencorev1beta1.BackupBucket) error {
	entries := &gardencorev1beta1.BackupEntryList{}
	if err := garden.ListLive(ctx, entries, ""); err != nil {
		return err
	}
	for _, entry := range entries.Items {
		if entry.Spec.BucketName == bucket.Name {
			return fmt.Errorf("the bucket has the backups of the BackupEntry %s/%s: delete its BackupEntries first", entry.Namespace, entry.Name)
		}
	}
	return nil
}

func validateRegistration(ctx context.Context, request *admission.Request, garden *admission.Garden, registration, old *gardencorev1beta1.ControllerRegistration) error {
	if registration.DeletionTimestamp != nil || registration.Spec.Deployment == nil {
		return nil
	}
	stored := map[string]bool{}
	if old != nil && old.Spec.Deployment != nil {
		for _, reference := range old.Spec.Deployment.DeploymentRefs {
			stored[reference.Name] = true
		}
	}
	c := &check{ctx: ctx, request: request, garden: garden}
	for i, reference := range registration.Spec.Deployment.DeploymentRefs {
		if !stored[reference.Name] {
			c.exists(field.NewPath("spec", "deployment", "deploymentRefs").Index(i).Child("name"),
				gardencorev1.SchemeGroupVersion.WithKind("ControllerDeployment"), "", reference.Name)
		}
	}
	return c.result()
}

// validateGardenlet refuses a second owner of one Seed.
func validateGardenlet(ctx context.Context, _ *admission.Request, garden *admission.Garden, gardenlet, _ *seedmanagementv1alpha1.Gardenlet) error {
	return unique(ctx, garden, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed"), gardenlet.Namespace, gardenlet.Name)
}

func validateManagedSeed(ctx context.Context, _ *admission.Request, garden *admission.Garden, seed, _ *seedmanagementv1alpha1.ManagedSeed) error {
	return unique(ctx, garden, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("Gardenlet"), seed.Namespace, seed.Name)
}

func unique(ctx context.Context, garden *admission.Garden, other schema.GroupVersionKind, namespace, name string) error {
	found, err := garden.Exists(ctx, other, namespace, name)
	if err != nil && !apierrors.IsServiceUnavailable(err) {
		return err
	}
	if err == nil && found {
		return fmt.Errorf("metadata.name: the %s %s already manages the Seed of this name", other.Kind, admission.Key(namespace, name))
	}
	return err
}
