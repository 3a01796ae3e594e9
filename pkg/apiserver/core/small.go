package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type (
	exposureClass  = *gardencorev1beta1.ExposureClass
	internalSecret = *gardencorev1beta1.InternalSecret
	quota          = *gardencorev1beta1.Quota
	secretBinding  = *gardencorev1beta1.SecretBinding
	shootState     = *gardencorev1beta1.ShootState
)

func exposureClasses() *registry.Kind[exposureClass] {
	return &registry.Kind[exposureClass]{
		Resource: resource("ExposureClass"),
		New:      func() exposureClass { return &gardencorev1beta1.ExposureClass{} },
		NewList:  func() runtime.Object { return &gardencorev1beta1.ExposureClassList{} },
		Columns: []registry.Column[exposureClass]{
			{Name: "Handler", Description: "Name of the handler.", Value: func(e exposureClass) any { return e.Handler }},
		},
		Validate:       validation.ValidateExposureClass,
		ValidateUpdate: validation.ValidateExposureClassUpdate,
	}
}

func internalSecrets() *registry.Kind[internalSecret] {
	return &registry.Kind[internalSecret]{
		Resource:                 resource("InternalSecret"),
		New:                      func() internalSecret { return &gardencorev1beta1.InternalSecret{} },
		NewList:                  func() runtime.Object { return &gardencorev1beta1.InternalSecretList{} },
		SelectableFields:         func(s internalSecret) fields.Set { return fields.Set{"type": string(s.Type)} },
		AllowUnconditionalUpdate: true,
		Columns: []registry.Column[internalSecret]{
			{Name: "Type", Description: "Type of the secret.", Value: func(s internalSecret) any { return string(s.Type) }},
			{Name: "Data", Description: "Number of keys.", Value: func(s internalSecret) any { return int64(len(s.Data)) }},
		},
		Validate:       validation.ValidateInternalSecret,
		ValidateUpdate: validation.ValidateInternalSecretUpdate,
		PrepareForCreate: func(_ context.Context, s internalSecret) {
			mergeStringData(s)
			if s.Type == "" {
				s.Type = corev1.SecretTypeOpaque
			}
		},
		PrepareForUpdate: func(_ context.Context, updated, old internalSecret) {
			mergeStringData(updated)
			if updated.Type == "" {
				updated.Type = old.Type
			}
		},
	}
}

// mergeStringData moves stringData, which is write-only, to data.
func mergeStringData(s internalSecret) {
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

func quotas() *registry.Kind[quota] {
	return &registry.Kind[quota]{
		Resource:                 resource("Quota"),
		New:                      func() quota { return &gardencorev1beta1.Quota{} },
		NewList:                  func() runtime.Object { return &gardencorev1beta1.QuotaList{} },
		AllowUnconditionalUpdate: true,
		Columns: []registry.Column[quota]{
			{
				Name: "Scope", Description: "Kind of what the quota applies to.",
				Value: func(q quota) any { return q.Spec.Scope.APIVersion + "." + q.Spec.Scope.Kind },
			},
			{Name: "Cluster Lifetime", Description: "Time after which clusters are deleted.", Value: func(q quota) any {
				if q.Spec.ClusterLifetimeDays == nil {
					return cell.None
				}
				return fmt.Sprintf("%d days", *q.Spec.ClusterLifetimeDays)
			}},
		},
		Validate:       validation.ValidateQuota,
		ValidateUpdate: validation.ValidateQuotaUpdate,
	}
}

func secretBindings() *registry.Kind[secretBinding] {
	return &registry.Kind[secretBinding]{
		Resource:                 resource("SecretBinding"),
		New:                      func() secretBinding { return &gardencorev1beta1.SecretBinding{} },
		NewList:                  func() runtime.Object { return &gardencorev1beta1.SecretBindingList{} },
		AllowUnconditionalUpdate: true,
		Columns: []registry.Column[secretBinding]{
			{
				Name: "Secret", Description: "Secret with the credentials.",
				Value: func(b secretBinding) any { return b.SecretRef.Namespace + "/" + b.SecretRef.Name },
			},
			{Name: "Provider", Description: "Type of the infrastructure.", Value: func(b secretBinding) any {
				if b.Provider == nil {
					return cell.None
				}
				return b.Provider.Type
			}},
		},
		// Default again, because the namespace of an object is known only now if the object did not set it.
		PrepareForCreate: func(_ context.Context, b secretBinding) { gardencorev1beta1.SetDefaultsSecretBinding(b) },
		Validate:         validation.ValidateSecretBinding,
		ValidateUpdate:   validation.ValidateSecretBindingUpdate,
		Warnings: func(context.Context, secretBinding, secretBinding) []string {
			return []string{"SecretBinding is deprecated: use a CredentialsBinding of security.gardener.cloud/v1alpha1"}
		},
	}
}

func shootStates() *registry.Kind[shootState] {
	return &registry.Kind[shootState]{
		Resource: resource("ShootState"),
		New:      func() shootState { return &gardencorev1beta1.ShootState{} },
		NewList:  func() runtime.Object { return &gardencorev1beta1.ShootStateList{} },
		Columns: []registry.Column[shootState]{
			{
				Name: "Gardener Data", Description: "Number of data of the gardenlet.",
				Value: func(s shootState) any { return int64(len(s.Spec.Gardener)) },
			},
			{
				Name: "Extension States", Description: "Number of states of extensions.",
				Value: func(s shootState) any { return int64(len(s.Spec.Extensions)) },
			},
		},
		Validate:          validation.ValidateShootState,
		ValidateUpdate:    validation.ValidateShootStateUpdate,
		GenerationChanges: func(updated, old shootState) bool { return differ(updated.Spec, old.Spec) },
	}
}
