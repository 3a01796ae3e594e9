// Package customverbauthorizer is an admission plugin of the garden's API. Some fields need a right of their own.
package customverbauthorizer

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// The verbs that users need to change some fields.
const (
	verbManageMembers       = "manage-members"
	verbMarkSelfHosted      = "mark-self-hosted"
	verbModifyImages        = "modify-spec-machineimages"
	verbModifyKubernetes    = "modify-spec-kubernetes"
	verbModifyProvider      = "modify-spec-providerconfig"
	verbModifyTolerations   = "modify-spec-tolerations-whitelist"
	projects                = "projects"
	namespacedCloudProfiles = "namespacedcloudprofiles"
	shoots                  = "shoots"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "CustomVerbAuthorizer",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource(projects), Operations: admission.OnCreateOrUpdate, Validate: admission.On(project)},
		{Resource: gardencorev1beta1.Resource(namespacedCloudProfiles), Operations: admission.OnCreateOrUpdate, Validate: admission.On(profile)},
		{Resource: gardencorev1beta1.Resource(shoots), Operations: admission.OnCreateOrUpdate, Validate: admission.On(shoot)},
	},
}

func project(ctx context.Context, request *admission.Request, garden *admission.Garden, updated, old *gardencorev1beta1.Project) error {
	if updated.DeletionTimestamp != nil {
		return nil
	}
	if old == nil {
		old = &gardencorev1beta1.Project{}
	}
	return require(ctx, request, garden, []guarded{
		{verbModifyTolerations, "spec.tolerations.whitelist", changed(whitelist(updated), whitelist(old))},
		{verbManageMembers, "spec.members and spec.owner", membersChanged(&updated.Spec, &old.Spec, request.User)},
	})
}

func profile(ctx context.Context, request *admission.Request, garden *admission.Garden, updated, old *gardencorev1beta1.NamespacedCloudProfile) error {
	if updated.DeletionTimestamp != nil {
		return nil
	}
	if old == nil {
		old = &gardencorev1beta1.NamespacedCloudProfile{}
	}
	return require(ctx, request, garden, []guarded{
		{verbModifyKubernetes, "spec.kubernetes", changed(updated.Spec.Kubernetes, old.Spec.Kubernetes)},
		{verbModifyImages, "spec.machineImages", changed(updated.Spec.MachineImages, old.Spec.MachineImages)},
		{verbModifyProvider, "spec.providerConfig", changed(updated.Spec.ProviderConfig, old.Spec.ProviderConfig)},
	})
}

func shoot(ctx context.Context, request *admission.Request, garden *admission.Garden, updated, old *gardencorev1beta1.Shoot) error {
	if updated.DeletionTimestamp != nil {
		return nil
	}
	if old == nil {
		old = &gardencorev1beta1.Shoot{}
	}
	return require(ctx, request, garden, []guarded{
		{verbMarkSelfHosted, "controlPlane of spec.provider.workers", changed(controlPlanes(updated), controlPlanes(old))},
	})
}

// guarded is a field that only users with a verb may change.
type guarded struct {
	verb, field string
	changed     bool
}

func require(ctx context.Context, request *admission.Request, garden *admission.Garden, fields []guarded) error {
	for _, one := range fields {
		if !one.changed {
			continue
		}
		allowed, err := garden.May(ctx, request.User, one.verb, request.Resource, "", request.Namespace, request.Name)
		if err != nil {
			return admission.Unavailable("%v", err)
		}
		if !allowed {
			return fmt.Errorf("user %q may not change %s: this needs the verb %s on %s", request.User.GetName(), one.field, one.verb, request.Resource)
		}
	}
	return nil
}

// changed compares values, among which empty ones are equal.
func changed(updated, old any) bool {
	return !equality.Semantic.DeepEqual(updated, old) && (!empty(updated) || !empty(old))
}

func empty(value any) bool {
	reflected := reflect.ValueOf(value)
	switch reflected.Kind() {
	case reflect.Slice, reflect.Map:
		return reflected.Len() == 0
	case reflect.Pointer:
		return reflected.IsNil()
	default:
		return !reflected.IsValid() || reflected.IsZero()
	}
}

func whitelist(project *gardencorev1beta1.Project) []gardencorev1beta1.Toleration {
	if project.Spec.Tolerations == nil {
		return nil
	}
	return project.Spec.Tolerations.Whitelist
}

// controlPlanes returns the names of the pools that run control planes.
func controlPlanes(shoot *gardencorev1beta1.Shoot) []string {
	var names []string
	for _, pool := range shoot.Spec.Provider.Workers {
		if pool.ControlPlane != nil {
			names = append(names, pool.Name)
		}
	}
	return names
}
