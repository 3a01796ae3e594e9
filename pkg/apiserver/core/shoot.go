package core

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type shoot = *gardencorev1beta1.Shoot

func shoots(with Dependencies) *registry.Kind[shoot] {
	kind := &registry.Kind[shoot]{
		Resource:                resource("Shoot"),
		New:                     func() shoot { return &gardencorev1beta1.Shoot{} },
		NewList:                 func() runtime.Object { return &gardencorev1beta1.ShootList{} },
		SelectableFields:        shootFields,
		IndexedField:            "spec.seedName",
		Columns:                 shootColumns(),
		CopyStatus:              func(to, from shoot) { to.Status = from.Status },
		GenerationChanges:       shootGenerationChanges,
		StatusGenerationChanges: shootStatusGenerationChanges,
		Canonicalize:            canonicalizeShoot,
		Validate:                validation.ValidateShoot,
		ValidateUpdate:          validation.ValidateShootUpdate,
		ValidateStatusUpdate:    validation.ValidateShootStatusUpdate,
		// Default again, because the namespace and a generated name are known only now if the object did not set them.
		PrepareForCreate: func(_ context.Context, created shoot) {
			gardencorev1beta1.SetDefaultsShoot(created)
			tidyOperations(created)
		},
		PrepareForUpdate: func(_ context.Context, updated, old shoot) {
			gardencorev1beta1.SetDefaultsShoot(updated)
			tidyOperations(updated)
			syncUpdatedShoot(updated, old)
		},
		Warnings: func(_ context.Context, updated, old shoot) []string {
			return shootWarnings(updated, old, with.Now(), with.RotationInterval)
		},
		Further: func(main *registry.Storage[shoot]) map[string]rest.Storage {
			return map[string]rest.Storage{
				"binding":          newBinding(main),
				"adminkubeconfig":  newAdminKubeconfigs(main, with.Kubeconfigs),
				"viewerkubeconfig": newViewerKubeconfigs(main, with.Kubeconfigs),
			}
		},
	}
	if with.Domains != nil {
		kind.Claim, kind.Release = with.Domains.Take, with.Domains.Release
	}
	return kind
}

func shootFields(s shoot) fields.Set {
	set := fields.Set{
		"spec.seedName":          text(s.Spec.SeedName),
		"status.seedName":        text(s.Status.SeedName),
		"spec.cloudProfileName":  text(s.Spec.CloudProfileName),
		"spec.cloudProfile.Name": "", // the capital letters are Gardener's
		"spec.cloudProfile.Kind": "",
	}
	if s.Spec.CloudProfile != nil {
		set["spec.cloudProfile.Name"], set["spec.cloudProfile.Kind"] = s.Spec.CloudProfile.Name, s.Spec.CloudProfile.Kind
	}
	return set
}

func shootColumns() []registry.Column[shoot] {
	column := func(name, description string, wide bool, value func(shoot) string) registry.Column[shoot] {
		return registry.Column[shoot]{Name: name, Description: description, Wide: wide, Value: func(s shoot) any { return value(s) }}
	}
	condition := func(name, description string, of gardencorev1beta1.ConditionType) registry.Column[shoot] {
		return column(name, description, true, func(s shoot) string { return cell.Condition(s.Status.Conditions, of) })
	}
	return []registry.Column[shoot]{
		column("CloudProfile", "Name of the cloud profile.", false, cloudProfileOf),
		column("Provider", "Type of the infrastructure.", false, func(s shoot) string { return s.Spec.Provider.Type }),
		column("Region", "Region of the infrastructure.", false, func(s shoot) string { return s.Spec.Region }),
		column("Seed", "Name of the Seed.", true, func(s shoot) string { return cell.Text(s.Spec.SeedName) }),
		column("K8S Version", "Version of Kubernetes.", false, func(s shoot) string { return s.Spec.Kubernetes.Version }),
		column("Hibernation", "Whether the cluster is hibernated.", false, hibernation),
		column("Last Operation", "Last operation.", false, func(s shoot) string { return cell.Operation(s.Status.LastOperation) }),
		column("Status", "Health of the cluster.", false, func(s shoot) string { return cell.OrPending(s.Labels[constants.LabelShootStatus]) }),
		column("Purpose", "Purpose of the cluster.", true, func(s shoot) string {
			if s.Spec.Purpose == nil {
				return cell.None
			}
			return string(*s.Spec.Purpose)
		}),
		column("Gardener Version", "Version of the gardenlet.", true, func(s shoot) string { return cell.OrUnknown(s.Status.Gardener.Version) }),
		condition("APIServer", "Whether the API server is available.", gardencorev1beta1.ShootAPIServerAvailable),
		condition("Control", "Whether the control plane is healthy.", gardencorev1beta1.ShootControlPlaneHealthy),
		condition("Observability", "Whether the observability components are healthy.", gardencorev1beta1.ShootObservabilityComponentsHealthy),
		condition("Nodes", "Whether every node is ready.", gardencorev1beta1.ShootEveryNodeReady),
		condition("System", "Whether the system components are healthy.", gardencorev1beta1.ShootSystemComponentsHealthy),
	}
}

func cloudProfileOf(s shoot) string {
	switch {
	case s.Spec.CloudProfile == nil:
		return cell.Text(s.Spec.CloudProfileName)
	case s.Spec.CloudProfile.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile:
		return s.Namespace + "/" + s.Spec.CloudProfile.Name
	default:
		return s.Spec.CloudProfile.Name
	}
}

func hibernation(s shoot) string {
	wanted, is := hibernationWanted(s), s.Status.IsHibernated
	switch {
	case wanted && is:
		return "Hibernated"
	case wanted:
		return "Hibernating"
	case is:
		return "Waking Up"
	default:
		return "Awake"
	}
}

func hibernationWanted(s shoot) bool {
	return s.Spec.Hibernation != nil && s.Spec.Hibernation.Enabled != nil && *s.Spec.Hibernation.Enabled
}
