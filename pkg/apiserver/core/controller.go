package core

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type (
	controllerDeployment   = *gardencorev1.ControllerDeployment
	controllerRegistration = *gardencorev1beta1.ControllerRegistration
	controllerInstallation = *gardencorev1beta1.ControllerInstallation
)

func controllerDeployments() *registry.Kind[controllerDeployment] {
	return &registry.Kind[controllerDeployment]{
		Resource:       served.Of(gardencorev1.SchemeGroupVersion.WithKind("ControllerDeployment")),
		New:            func() controllerDeployment { return &gardencorev1.ControllerDeployment{} },
		NewList:        func() runtime.Object { return &gardencorev1.ControllerDeploymentList{} },
		Validate:       validation.ValidateControllerDeployment,
		ValidateUpdate: validation.ValidateControllerDeploymentUpdate,
		GenerationChanges: func(updated, old controllerDeployment) bool {
			for _, annotation := range []string{gardencorev1.AnnotationMigrationType, gardencorev1.AnnotationMigrationProviderConfig} {
				if updated.Annotations[annotation] != old.Annotations[annotation] {
					return true
				}
			}
			return differ(updated.Helm, old.Helm) || differ(updated.Resources, old.Resources)
		},
	}
}

func controllerRegistrations() *registry.Kind[controllerRegistration] {
	return &registry.Kind[controllerRegistration]{
		Resource: resource("ControllerRegistration"),
		New:      func() controllerRegistration { return &gardencorev1beta1.ControllerRegistration{} },
		NewList:  func() runtime.Object { return &gardencorev1beta1.ControllerRegistrationList{} },
		Columns: []registry.Column[controllerRegistration]{
			{Name: "Resources", Description: "Kinds and types that the extension is responsible for.", Value: func(r controllerRegistration) any {
				names := make([]string, 0, len(r.Spec.Resources))
				for _, resource := range r.Spec.Resources {
					names = append(names, resource.Kind+"/"+resource.Type)
				}
				return strings.Join(names, ", ")
			}},
		},
		Validate:          validation.ValidateControllerRegistration,
		ValidateUpdate:    validation.ValidateControllerRegistrationUpdate,
		GenerationChanges: func(updated, old controllerRegistration) bool { return differ(updated.Spec, old.Spec) },
	}
}

func controllerInstallations() *registry.Kind[controllerInstallation] {
	condition := func(of gardencorev1beta1.ConditionType, description string) registry.Column[controllerInstallation] {
		return registry.Column[controllerInstallation]{Name: string(of), Description: description, Value: func(i controllerInstallation) any {
			return cell.Condition(i.Status.Conditions, of)
		}}
	}
	return &registry.Kind[controllerInstallation]{
		Resource: resource("ControllerInstallation"),
		New:      func() controllerInstallation { return &gardencorev1beta1.ControllerInstallation{} },
		NewList:  func() runtime.Object { return &gardencorev1beta1.ControllerInstallationList{} },
		SelectableFields: func(i controllerInstallation) fields.Set {
			set := fields.Set{"spec.registrationRef.name": i.Spec.RegistrationRef.Name, "spec.seedRef.name": ""}
			if i.Spec.SeedRef != nil {
				set["spec.seedRef.name"] = i.Spec.SeedRef.Name
			}
			return withShootRef(set, i.Spec.ShootRef)
		},
		IndexedField: "spec.seedRef.name",
		Columns: []registry.Column[controllerInstallation]{
			{Name: "Registration", Description: "Name of the ControllerRegistration.", Value: func(i controllerInstallation) any {
				return i.Spec.RegistrationRef.Name
			}},
			{Name: "Cluster", Description: "Cluster that the extension is installed in.", Value: func(i controllerInstallation) any {
				switch {
				case i.Spec.SeedRef != nil:
					return "Seed/" + i.Spec.SeedRef.Name
				case i.Spec.ShootRef != nil:
					return "Shoot/" + i.Spec.ShootRef.Namespace + "/" + i.Spec.ShootRef.Name
				default:
					return cell.None
				}
			}},
			condition(gardencorev1beta1.ControllerInstallationValid, "Whether the installation is valid."),
			condition(gardencorev1beta1.ControllerInstallationInstalled, "Whether the extension is installed."),
			condition(gardencorev1beta1.ControllerInstallationHealthy, "Whether the extension is healthy."),
			condition(gardencorev1beta1.ControllerInstallationProgressing, "Whether the extension is being rolled out."),
		},
		Validate:          validation.ValidateControllerInstallation,
		ValidateUpdate:    validation.ValidateControllerInstallationUpdate,
		CopyStatus:        func(to, from controllerInstallation) { to.Status = from.Status },
		GenerationChanges: func(updated, old controllerInstallation) bool { return differ(updated.Spec, old.Spec) },
	}
}
