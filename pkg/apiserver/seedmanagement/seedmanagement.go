// Package seedmanagement has the kinds of the group seedmanagement.gardener.cloud as the API server serves them.
package seedmanagement

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type (
	gardenlet      = *seedmanagementv1alpha1.Gardenlet
	managedSeed    = *seedmanagementv1alpha1.ManagedSeed
	managedSeedSet = *seedmanagementv1alpha1.ManagedSeedSet
)

// Kinds returns the kinds of the group.
func Kinds() []registry.Served {
	return []registry.Served{gardenlets(), managedSeeds(), managedSeedSets()}
}

func resource(kind string) served.Resource {
	return served.Of(seedmanagementv1alpha1.SchemeGroupVersion.WithKind(kind))
}

func gardenlets() *registry.Kind[gardenlet] {
	operations := registry.Operations{
		Once: []string{constants.OperationReconcile}, Kept: []string{constants.OperationRenewKubeconfig, constants.OperationForceRedeploy},
	}
	return &registry.Kind[gardenlet]{
		Resource: resource("Gardenlet"),
		New:      func() gardenlet { return &seedmanagementv1alpha1.Gardenlet{} },
		NewList:  func() runtime.Object { return &seedmanagementv1alpha1.GardenletList{} },
		Columns: []registry.Column[gardenlet]{
			{Name: "OCI Repository", Description: "Helm chart of the gardenlet.", Value: func(g gardenlet) any {
				return chart(g.Spec.Deployment.Helm.OCIRepository)
			}},
			{Name: "Reconciled", Description: "Whether the gardenlet is deployed.", Value: func(g gardenlet) any {
				return cell.Condition(g.Status.Conditions, seedmanagementv1alpha1.GardenletReconciled)
			}},
		},
		Validate:             validation.ValidateGardenlet,
		ValidateUpdate:       validation.ValidateGardenletUpdate,
		ValidateStatusUpdate: validation.ValidateGardenletStatusUpdate,
		CopyStatus:           func(to, from gardenlet) { to.Status = from.Status },
		GenerationChanges: func(updated, old gardenlet) bool {
			asked := operations.Requested(updated, old)
			return asked || !equality.Semantic.DeepEqual(updated.Spec, old.Spec)
		},
	}
}

// chart returns a reference to a chart in the usual notation.
func chart(repository gardencorev1.OCIRepository) string {
	value := func(text *string) string {
		if text == nil {
			return ""
		}
		return *text
	}
	switch {
	case value(repository.Ref) != "":
		return *repository.Ref
	case value(repository.Digest) != "":
		return value(repository.Repository) + "@" + *repository.Digest
	case value(repository.Tag) != "":
		return value(repository.Repository) + ":" + *repository.Tag
	default:
		return value(repository.Repository)
	}
}

func managedSeeds() *registry.Kind[managedSeed] {
	operations := registry.Operations{Once: []string{constants.OperationReconcile}, Kept: []string{constants.OperationRenewKubeconfig}}
	shootName := func(s managedSeed) string {
		if s.Spec.Shoot == nil {
			return ""
		}
		return s.Spec.Shoot.Name
	}
	return &registry.Kind[managedSeed]{
		Resource:         resource("ManagedSeed"),
		New:              func() managedSeed { return &seedmanagementv1alpha1.ManagedSeed{} },
		NewList:          func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeedList{} },
		SelectableFields: func(s managedSeed) fields.Set { return fields.Set{"spec.shoot.name": shootName(s)} },
		IndexedField:     "spec.shoot.name",
		Columns: []registry.Column[managedSeed]{
			{Name: "Status", Description: "Whether the Seed is registered.", Value: func(s managedSeed) any {
				switch cell.Condition(s.Status.Conditions, seedmanagementv1alpha1.SeedRegistered) {
				case string(gardencorev1beta1.ConditionTrue):
					return "Registered"
				case string(gardencorev1beta1.ConditionFalse), string(gardencorev1beta1.ConditionProgressing):
					return "NotRegistered"
				default:
					return "Unknown"
				}
			}},
			{Name: "Shoot", Description: "Name of the Shoot.", Value: func(s managedSeed) any { return shootName(s) }},
		},
		Validate:             validation.ValidateManagedSeed,
		ValidateUpdate:       validation.ValidateManagedSeedUpdate,
		ValidateStatusUpdate: validation.ValidateManagedSeedStatusUpdate,
		CopyStatus:           func(to, from managedSeed) { to.Status = from.Status },
		GenerationChanges: func(updated, old managedSeed) bool {
			asked := operations.Requested(updated, old)
			return asked || !equality.Semantic.DeepEqual(updated.Spec, old.Spec)
		},
	}
}

func managedSeedSets() *registry.Kind[managedSeedSet] {
	operations := registry.Operations{Once: []string{constants.OperationReconcile}}
	return &registry.Kind[managedSeedSet]{
		Resource: resource("ManagedSeedSet"),
		New:      func() managedSeedSet { return &seedmanagementv1alpha1.ManagedSeedSet{} },
		NewList:  func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeedSetList{} },
		Columns: []registry.Column[managedSeedSet]{
			{Name: "Ready", Description: "Number of ready ManagedSeeds, and of those wanted.", Value: func(s managedSeedSet) any {
				return fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicas(s))
			}},
			{Name: "Pending", Description: "ManagedSeed that the set waits for.", Value: func(s managedSeedSet) any {
				if s.Status.PendingReplica == nil {
					return cell.None
				}
				return fmt.Sprintf("%s:%s", s.Status.PendingReplica.Name, s.Status.PendingReplica.Reason)
			}},
		},
		Validate:             validation.ValidateManagedSeedSet,
		ValidateUpdate:       validation.ValidateManagedSeedSetUpdate,
		ValidateStatusUpdate: validation.ValidateManagedSeedSetStatusUpdate,
		CopyStatus:           func(to, from managedSeedSet) { to.Status = from.Status },
		GenerationChanges: func(updated, old managedSeedSet) bool {
			asked := operations.Requested(updated, old)
			return asked || !equality.Semantic.DeepEqual(updated.Spec, old.Spec)
		},
		Further: func(main *registry.Storage[managedSeedSet]) map[string]rest.Storage {
			return map[string]rest.Storage{"scale": &scale{store: main.Store}}
		},
	}
}

func replicas(s managedSeedSet) int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}
