package core

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type (
	cloudProfile           = *gardencorev1beta1.CloudProfile
	namespacedCloudProfile = *gardencorev1beta1.NamespacedCloudProfile
)

func cloudProfiles(now func() time.Time) *registry.Kind[cloudProfile] {
	return &registry.Kind[cloudProfile]{
		Resource:                 resource("CloudProfile"),
		New:                      func() cloudProfile { return &gardencorev1beta1.CloudProfile{} },
		NewList:                  func() runtime.Object { return &gardencorev1beta1.CloudProfileList{} },
		AllowUnconditionalUpdate: true,
		Columns: []registry.Column[cloudProfile]{
			{Name: "Provider", Description: "Type of the infrastructure.", Value: func(p cloudProfile) any { return p.Spec.Type }},
		},
		CopyStatus: func(to, from cloudProfile) { to.Status = from.Status },
		Validate:   validation.ValidateCloudProfile,
		ValidateUpdate: func(updated, old cloudProfile) field.ErrorList {
			return append(validation.ValidateCloudProfileUpdate(updated, old), validation.ValidateCloudProfileStages(updated, old, now())...)
		},
		PrepareForUpdate: func(_ context.Context, updated, old cloudProfile) { syncArchitectures(&updated.Spec, &old.Spec) },
		PrepareForCreate: func(_ context.Context, p cloudProfile) {
			syncArchitectures(&p.Spec, &gardencorev1beta1.CloudProfileSpec{})
			dropVersions(&p.Spec.Kubernetes, now(), nil)
			dropImageVersions(p.Spec.MachineImages, nil, func(v gardencorev1beta1.ExpirableVersion) bool { return expired(v, now()) })
		},
	}
}

func namespacedCloudProfiles(now func() time.Time) *registry.Kind[namespacedCloudProfile] {
	prepare := func(updated, old namespacedCloudProfile) {
		if updated.Spec.Kubernetes != nil {
			dropVersions(updated.Spec.Kubernetes, now(), old.Spec.Kubernetes)
		}
		dropImageVersions(updated.Spec.MachineImages, old.Spec.MachineImages,
			func(v gardencorev1beta1.ExpirableVersion) bool { return inactive(v, now()) })
		updated.Spec.MachineImages = slices.DeleteFunc(updated.Spec.MachineImages, func(image gardencorev1beta1.MachineImage) bool {
			return len(image.Versions) == 0 && image.UpdateStrategy == nil
		})
	}
	return &registry.Kind[namespacedCloudProfile]{
		Resource:                 resource("NamespacedCloudProfile"),
		New:                      func() namespacedCloudProfile { return &gardencorev1beta1.NamespacedCloudProfile{} },
		NewList:                  func() runtime.Object { return &gardencorev1beta1.NamespacedCloudProfileList{} },
		AllowUnconditionalUpdate: true,
		Columns: []registry.Column[namespacedCloudProfile]{
			{Name: "Parent Name", Description: "Name of the parent.", Value: func(p namespacedCloudProfile) any { return p.Spec.Parent.Name }},
			{Name: "Parent Kind", Description: "Kind of the parent.", Value: func(p namespacedCloudProfile) any { return p.Spec.Parent.Kind }},
		},
		Validate:          validation.ValidateNamespacedCloudProfile,
		ValidateUpdate:    validation.ValidateNamespacedCloudProfileUpdate,
		CopyStatus:        func(to, from namespacedCloudProfile) { to.Status = from.Status },
		GenerationChanges: func(updated, old namespacedCloudProfile) bool { return differ(updated.Spec, old.Spec) },
		PrepareForCreate: func(_ context.Context, created namespacedCloudProfile) {
			prepare(created, &gardencorev1beta1.NamespacedCloudProfile{})
		},
		PrepareForUpdate: func(_ context.Context, updated, old namespacedCloudProfile) { prepare(updated, old) },
	}
}

// dropVersions removes the versions of Kubernetes that cannot be used, unless the old settings already contain them.
func dropVersions(settings *gardencorev1beta1.KubernetesSettings, now time.Time, old *gardencorev1beta1.KubernetesSettings) {
	settings.Versions = slices.DeleteFunc(settings.Versions, func(v gardencorev1beta1.ExpirableVersion) bool {
		had := old != nil && slices.ContainsFunc(old.Versions, func(o gardencorev1beta1.ExpirableVersion) bool { return o.Version == v.Version })
		return !had && inactive(v, now)
	})
}

// dropImageVersions removes unusable versions of machine images, unless the old images already contain them.
func dropImageVersions(images, old []gardencorev1beta1.MachineImage, unusable func(gardencorev1beta1.ExpirableVersion) bool) {
	had := map[[2]string]bool{}
	for _, image := range old {
		for _, version := range image.Versions {
			had[[2]string{image.Name, version.Version}] = true
		}
	}
	for i := range images {
		image := &images[i]
		image.Versions = slices.DeleteFunc(image.Versions, func(v gardencorev1beta1.MachineImageVersion) bool {
			return !had[[2]string{image.Name, v.Version}] && unusable(v.ExpirableVersion)
		})
	}
}

// inactive reports whether a version cannot be used anymore, or cannot be used yet.
func inactive(version gardencorev1beta1.ExpirableVersion, now time.Time) bool {
	return expired(version, now) || version.ClassificationAt(now) == gardencorev1beta1.ClassificationUnavailable
}

func expired(version gardencorev1beta1.ExpirableVersion, now time.Time) bool {
	return version.ClassificationAt(now) == gardencorev1beta1.ClassificationExpired
}
