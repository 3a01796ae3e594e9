// Package extensionlabels is an admission plugin of the garden's API. Objects have a label for each type of extension that they
// name, so that webhooks of extensions can select the objects that they check.
package extensionlabels

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// prefixes are those of the labels of this plugin.
var prefixes = []string{
	constants.LabelPrefixProviderExtension, constants.LabelPrefixExtension, constants.LabelPrefixDNSRecordExtension,
	constants.LabelPrefixNetworkingExtension, constants.LabelPrefixOperatingSystemConfigExtension, constants.LabelPrefixContainerRuntimeExtension,
	constants.LabelPrefixSelfHostedShootExposureExtension,
}

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ExtensionLabels",
	Rules: []admission.Rule{
		rule("backupbuckets", provider(func(bucket *gardencorev1beta1.BackupBucket) string { return bucket.Spec.Provider.Type })),
		rule("backupentries", admission.On(admitEntry)),
		rule("cloudprofiles", provider(func(profile *gardencorev1beta1.CloudProfile) string { return profile.Spec.Type })),
		rule("namespacedcloudprofiles", admission.On(admitProfile)),
		rule("secretbindings", provider(func(binding *gardencorev1beta1.SecretBinding) string {
			if binding.Provider == nil {
				return ""
			}
			return binding.Provider.Type
		})),
		rule("seeds", admission.On(admitSeed)),
		rule("shoots", admission.On(admitShoot)),
		securityRule("credentialsbindings", provider(func(binding *securityv1alpha1.CredentialsBinding) string { return binding.Provider.Type })),
		securityRule("workloadidentities", provider(func(identity *securityv1alpha1.WorkloadIdentity) string { return identity.Spec.TargetSystem.Type })),
	},
}

func rule(resource string, admit admission.Handler) admission.Rule {
	return admission.Rule{Resource: gardencorev1beta1.Resource(resource), Operations: admission.OnCreateOrUpdate, Admit: admit}
}

func securityRule(resource string, admit admission.Handler) admission.Rule {
	return admission.Rule{Resource: securityv1alpha1.Resource(resource), Operations: admission.OnCreateOrUpdate, Admit: admit}
}

// object is an object with labels.
type object interface {
	metav1.Object
	runtime.Object
}

// provider returns a handler for a kind that names only infrastructures, separated by commas.
func provider[T object](types func(T) string) admission.Handler {
	return admission.On(func(_ context.Context, _ *admission.Request, _ *admission.Garden, labelled, _ T) error {
		wanted := wantedLabels{}
		for _, one := range strings.Split(types(labelled), ",") {
			wanted.add(constants.LabelPrefixProviderExtension, one)
		}
		return wanted.set(labelled)
	})
}

func admitEntry(ctx context.Context, _ *admission.Request, garden *admission.Garden, entry, old *gardencorev1beta1.BackupEntry) error {
	if old != nil && old.Spec.BucketName == entry.Spec.BucketName && keep(entry, old) {
		return nil
	}
	bucket, err := garden.BackupBuckets.Get(ctx, "", entry.Spec.BucketName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("spec.bucketName: the BackupBucket %q does not exist", entry.Spec.BucketName)
	}
	if err != nil {
		return err
	}
	wanted := wantedLabels{}
	wanted.add(constants.LabelPrefixProviderExtension, bucket.Spec.Provider.Type)
	return wanted.set(entry)
}

func admitProfile(ctx context.Context, _ *admission.Request, garden *admission.Garden, profile, old *gardencorev1beta1.NamespacedCloudProfile) error {
	if old != nil && old.Spec.Parent == profile.Spec.Parent && keep(profile, old) {
		return nil
	}
	parent, err := garden.CloudProfiles.Get(ctx, "", profile.Spec.Parent.Name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("spec.parent: the CloudProfile %q does not exist", profile.Spec.Parent.Name)
	}
	if err != nil {
		return err
	}
	wanted := wantedLabels{}
	wanted.add(constants.LabelPrefixProviderExtension, parent.Spec.Type)
	return wanted.set(profile)
}

func admitSeed(ctx context.Context, _ *admission.Request, garden *admission.Garden, seed, old *gardencorev1beta1.Seed) error {
	if old != nil && equality.Semantic.DeepEqual(seed.Spec, old.Spec) && keep(seed, old) {
		return nil
	}
	automatic, err := garden.ControllerRegistrations.By(ctx, admission.ControllerRegistrationsByAutoEnable, string(gardencorev1beta1.ClusterTypeSeed))
	if err != nil {
		return err
	}
	return ofSeed(&seed.Spec, automatic).set(seed)
}

func admitShoot(ctx context.Context, _ *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if old != nil && equality.Semantic.DeepEqual(shoot.Spec, old.Spec) && keep(shoot, old) {
		return nil
	}
	automatic, err := garden.ControllerRegistrations.By(ctx, admission.ControllerRegistrationsByAutoEnable, string(gardencorev1beta1.ClusterTypeShoot))
	if err != nil {
		return err
	}
	return ofShoot(&shoot.Spec, automatic).set(shoot)
}

// keep gives an object the labels of its stored form, and reports whether that is enough: the object is being deleted, or its
// stored form has labels. So a request that changes no type needs no facts.
func keep(updated, old metav1.Object) bool {
	stored := wantedLabels{}
	for key := range old.GetLabels() {
		if isOwn(key) {
			stored[key] = "true"
		}
	}
	if len(stored) == 0 && updated.GetDeletionTimestamp() == nil {
		return false
	}
	return stored.set(updated) == nil
}

// wantedLabels are the labels of an object for its extensions.
type wantedLabels map[string]string

func (w wantedLabels) add(prefix, typed string) {
	if typed != "" {
		w[prefix+typed] = "true"
	}
}

// set replaces the labels of this plugin. Its error is always nil, which saves handlers a line.
func (w wantedLabels) set(labelled metav1.Object) error {
	labels := maps.Clone(labelled.GetLabels())
	maps.DeleteFunc(labels, func(key, _ string) bool { return isOwn(key) })
	if labels == nil && len(w) > 0 {
		labels = map[string]string{}
	}
	maps.Copy(labels, w)
	labelled.SetLabels(labels)
	return nil
}

func isOwn(key string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
